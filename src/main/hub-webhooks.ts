import { allKinds, conversions } from '../api/index.ts'
import type { Client } from '../kube/index.ts'
import type { Logger, Runnable } from '../runtime/index.ts'
import {
  caBundlePublisher,
  converting,
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
  webhookCertificates,
  webhookServer,
  type Route,
  type WebhookConfiguration,
  type WebhookServerAddress,
} from '../runtime/webhook/index.ts'

export interface HubWebhookOptions {
  client: Client
  /** Where the certificates are kept. */
  namespace: string
  host: string
  port: number
  /** How the API server reaches us. */
  where: WebhookServerAddress
  routes: Record<string, Route>
  configurations: (where: WebhookServerAddress) => WebhookConfiguration[]
  log: Logger
}

/** The CRDs that name the conversion webhook. The hub may touch no others: those of the operators are not its own. */
const converted = allKinds
  .filter(({ group, kind }) => `${group}/${kind}` in conversions)
  .map(({ plural, group }) => `${plural}.${group}`)

const resourceOf = { ValidatingWebhookConfiguration, MutatingWebhookConfiguration }

/** The webhook server of the hub, on every replica: certificates, then the server, then the word to the API server. */
export const hubWebhooks = (options: HubWebhookOptions): Runnable => ({
  name: 'webhooks',
  everywhere: true,
  run: async (signal) => {
    const { client, namespace, where, log } = options
    const configurations = options.configurations(where)
    const named = (kind: string) => ({
      names: configurations.filter((c) => c.kind === kind).map((c) => c.metadata.name!),
    })
    const certificates = webhookCertificates({
      client,
      namespace,
      secretName: 'lanyard-webhook',
      log,
      ...namesOf(where),
      publish: caBundlePublisher({
        client,
        log,
        validating: named('ValidatingWebhookConfiguration'),
        mutating: named('MutatingWebhookConfiguration'),
        definitions: { names: converted },
      }),
    })
    await certificates.ensure()
    const server = webhookServer({
      host: options.host,
      port: options.port,
      certificate: () => certificates.current(),
      routes: { ...options.routes, '/convert': converting(conversions) },
      log,
    })
    certificates.onChange(() => server.reload())
    await server.start()
    // With the bundle from the first moment on: without it the API server would refuse every write until the next look.
    const { caBundle } = certificates.current()
    const bundle = Buffer.from(caBundle).toString('base64')
    for (const configuration of options.configurations({ ...where, caBundle: bundle }))
      await client
        .of(resourceOf[configuration.kind as keyof typeof resourceOf])
        .apply(configuration, { fieldManager: 'lanyard-hub', force: true, signal })
    try {
      await certificates.run(signal)
    } finally {
      await server.stop()
    }
  },
})

const namesOf = (where: WebhookServerAddress): { dnsNames: string[]; ipAddresses?: string[] } => {
  if ('service' in where) {
    const { namespace, name } = where.service
    return { dnsNames: [`${name}.${namespace}.svc`, `${name}.${namespace}.svc.cluster.local`] }
  }
  const host = new URL(where.url).hostname.replace(/^\[|\]$/g, '')
  return /^[\d.]+$|:/.test(host) ? { dnsNames: [], ipAddresses: [host] } : { dnsNames: [host] }
}
