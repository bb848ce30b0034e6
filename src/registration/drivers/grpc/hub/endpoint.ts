import { EventServer } from '../../../../events/index.ts'
import { ConfigMap, type Client } from '../../../../kube/index.ts'
import type { Clock, Logger, Manager, Runnable } from '../../../../runtime/index.ts'
import { webhookCertificates, type WebhookCertificates } from '../../../../runtime/webhook/index.ts'
import { grpcCaConfigMap, grpcSecret } from '../contract.ts'
import { Authentication } from './authentication.ts'
import { Authorization } from './authorization.ts'
import { Broker } from './broker.ts'
import type { Identity } from './identity.ts'
import { ClientLimits, type Limits } from './limits.ts'
import { cachesFor, servedFrom } from './served.ts'
import { eventService } from './service.ts'
import { Turns } from './turns.ts'
import { Vigil } from './vigil.ts'

export interface EndpointOptions {
  client: Client
  /** Where its certificates are kept. */
  namespace: string
  host: string
  /** 0 takes any free port. */
  port: number
  /** Names and addresses by which agents reach it. */
  names: readonly string[]
  gates: { defaultClusterSet: boolean }
  /** How long client certificates last at most. An authority that is replaced stays trusted until the last of them has ended. */
  signingMs: number
  clock: Clock
  log: Logger
  limits?: Partial<Limits> | undefined
  heartbeatMs?: number | undefined
  stalledMs?: number | undefined
  /** How often the certificates are looked at; a minute. */
  certificatesIntervalMs?: number | undefined
}

/** A running endpoint. */
export interface Endpoint extends Runnable {
  readonly listening: boolean
  /** Known once it listens. */
  readonly port: number
  readonly subscribers: number
  /** What agents trust; known once it runs. */
  readonly certificates: WebhookCertificates
}

const day = 24 * 3_600_000

/** The gRPC endpoint of a hub, on every replica: certificates, caches, then the server. */
export const grpcEndpoint = (manager: Manager, options: EndpointOptions): Endpoint => {
  const { client, namespace, clock, log } = options
  const caches = cachesFor(manager)
  const broker = new Broker(servedFrom(caches), clock)
  const access = new Authorization(client, clock)
  const limits = new ClientLimits(options.limits ?? {}, clock)
  const vigil = new Vigil({
    manager,
    broker,
    access,
    clock,
    log,
    heartbeatMs: options.heartbeatMs,
    stalledMs: options.stalledMs,
  })
  const calls = manager.metrics.counter('lanyard_grpc_calls_total', 'Calls to the gRPC endpoint by method and outcome')
  manager.metrics.gauge('lanyard_grpc_subscriptions', 'Open subscriptions').read(() => broker.size)
  const certificates = webhookCertificates({
    client,
    server: 'gRPC endpoint',
    namespace,
    secretName: grpcSecret,
    ...namesOf(options.names),
    settleMs: options.signingMs + day,
    intervalMs: options.certificatesIntervalMs,
    clock,
    log,
    publish: publishCa(client, namespace),
  })
  const server = new EventServer<Identity>({
    host: options.host,
    port: options.port,
    tls: () => {
      const { cert, key, caBundle } = certificates.current()
      return { cert, key, ca: caBundle }
    },
    service: eventService({
      desk: { client, caches, access, broker, turns: new Turns(), clock, log, gates: options.gates },
      authentication: new Authentication(client, clock),
      limits,
      watch: (subscriber) => vigil.add(subscriber),
      calls,
    }),
    clock,
    log,
  })
  return {
    name: 'grpc-endpoint',
    everywhere: true,
    certificates,
    get listening() {
      return server.listening
    },
    get port() {
      return server.port
    },
    get subscribers() {
      return broker.size
    },
    run: async (signal) => {
      // Who asks before the caches are complete would be told that nothing exists.
      await Promise.all(Object.values(caches).map(({ synced }) => synced))
      if (signal.aborted) return
      await certificates.ensure(signal)
      certificates.onChange(() => server.reload())
      await server.start()
      log.info('the gRPC endpoint listens', { port: server.port })
      vigil.run(signal)
      const sweep = setInterval(() => limits.sweep(), 60_000)
      try {
        await certificates.run(signal)
      } finally {
        clearInterval(sweep)
        await server.stop()
      }
    },
  }
}

/** What agents trust, where whoever lets clusters join finds it. */
const publishCa =
  (client: Client, namespace: string) =>
  async (caBundle: string, signal: AbortSignal): Promise<void> => {
    const { name, key } = grpcCaConfigMap
    const configMaps = client.of(ConfigMap, namespace)
    const present = await configMaps.find(name, { signal })
    if (present?.data?.[key] === caBundle) return
    const data = { ...present?.data, [key]: caBundle }
    if (present) await configMaps.update({ ...present, data }, { signal })
    else await configMaps.create({ metadata: { name, namespace }, data }, { signal })
  }

const namesOf = (names: readonly string[]): { dnsNames: string[]; ipAddresses: string[] } => {
  const isAddress = (name: string): boolean => /^[\d.]+$|:/.test(name)
  return { dnsNames: names.filter((name) => !isAddress(name)), ipAddresses: names.filter(isAddress) }
}
