import { ManagedCluster } from '../../api/index.ts'
import {
  ApiError,
  clientFor,
  ConnectionError,
  isForbidden,
  isNotFound,
  isUnauthorized,
  KubeconfigError,
  type Api,
  type SecretData,
} from '../../kube/index.ts'
import { configKey, secretKey } from '../../registration/contract.ts'
import { drivers, hubFromKubeconfig } from '../../registration/drivers/index.ts'
import type { Cli } from '../command.ts'
import { connectionIn } from '../hub-preflight.ts'
import { isDistrust } from '../hub-trust.ts'
import { patienceMs } from './look.ts'
import type { Way } from './snapshot.ts'

/** A credential from a secret, and which cluster it is tried for. */
export interface WayOptions {
  data: SecretData
  /** For messages. */
  source: string
  name: string
}

/**
 * Goes the way that the agent goes with its bootstrap secret, from this machine: one request. A kubeconfig from a secret may
 * name neither files nor programs, so that whoever can write the secret learns nothing of this machine.
 */
export const bootstrapWay = async (cli: Cli, options: WayOptions): Promise<Way> => {
  const { data, source } = options
  if (data[configKey]) return (await import('./grpc-way.ts')).grpcWay(cli, options, 'bootstrap')
  let hub: Api | undefined
  try {
    await hubFromKubeconfig(data, source, cli.env) // refuses what an agent refuses
    const connection = await connectionIn(cli, data[secretKey.kubeconfig]!, source)
    const { cert, token } = await connection.credentials({ signal: cli.signal })
    if (!cert && !token) return { kind: 'broken', why: `${source} holds neither a token nor a certificate` }
    hub = clientFor(connection, { userAgent: cli.program })
    return await wayThrough(cli, hub, options)
  } catch (error) {
    if (error instanceof KubeconfigError) return { kind: 'broken', why: error.message }
    throw error
  } finally {
    hub?.close()
  }
}

/** The same with the certificate that the agent was given. */
export const ownWay = async (cli: Cli, options: WayOptions): Promise<Way> => {
  const { data, source } = options
  if (data[configKey]) return (await import('./grpc-way.ts')).grpcWay(cli, options, 'cluster')
  let hub: Api | undefined
  try {
    const address = await hubFromKubeconfig(data, source, cli.env)
    hub = drivers.csr.agent({}).asCluster(() => data, address, { userAgent: cli.program })
    return await wayThrough(cli, hub, options)
  } catch (error) {
    if (error instanceof KubeconfigError) return { kind: 'broken', why: error.message }
    throw error
  } finally {
    hub?.close()
  }
}

/** Asks the hub for the ManagedCluster, once. */
export const wayThrough = async (cli: Cli, hub: Api, { name }: Pick<WayOptions, 'name'>): Promise<Way> => {
  const { server } = hub.connection
  try {
    const cluster = await hub.of(ManagedCluster).get(name, { timeoutMs: patienceMs, signal: cli.signal })
    return { kind: 'open', server, cluster }
  } catch (error) {
    cli.signal.throwIfAborted()
    if (isUnauthorized(error)) return { kind: 'refused', server }
    if (isForbidden(error)) return { kind: 'forbidden', server, why: error.serverMessage }
    // Without the name of the object it is the kind that was not found.
    if (isNotFound(error))
      return error.details.name ? { kind: 'open', server, cluster: undefined } : { kind: 'not-a-hub', server }
    if (error instanceof ConnectionError)
      return { kind: isDistrust(error) ? 'distrusted' : 'unreachable', server, why: error.message }
    if (error instanceof ApiError) return { kind: 'unreachable', server, why: error.message }
    throw error
  }
}
