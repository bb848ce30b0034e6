import { AppliedManifestWork, ManagedCluster, type Klusterlet } from '../api/index.ts'
import {
  ApiError,
  ConnectionError,
  decoded,
  isConflict,
  isForbidden,
  isNotFound,
  isUnauthorized,
  Secret,
  type Api,
  type Client,
} from '../kube/index.ts'
import { namespace } from '../operator/contract.ts'
import { Accepted, secretKey, secretName } from '../registration/contract.ts'
import { drivers, hubFromKubeconfig } from '../registration/drivers/index.ts'
import { findCondition } from '../runtime/index.ts'
import type { Cli } from './command.ts'
import { TimedOut } from './errors.ts'
import { untilObject } from './wait.ts'

/** Where a Klusterlet's agent keeps its secrets. */
export const agentNamespace = ({ metadata, spec }: Klusterlet): string =>
  spec?.deployOption?.mode?.endsWith('Hosted') ? metadata.name! : spec?.namespace || namespace.agent

/** How the farewell at the hub went. */
export type Farewell = { told: true; hub: string } | { told: false; hub: string; why: string }

/**
 * Tells the hub, with the cluster's own credential, that it no longer belongs to it, and waits until the hub has taken its
 * access away. A hub that cannot be told does not keep a cluster from leaving.
 */
export const tellHub = async (cli: Cli, local: Client, klusterlet: Klusterlet, cluster: string): Promise<Farewell> => {
  const place = agentNamespace(klusterlet)
  const secret = await local.of(Secret, place).find(secretName.hub, { signal: cli.signal })
  const data = decoded(secret) ?? {}
  if (!data[secretKey.kubeconfig])
    return { told: false, hub: 'the hub', why: 'this cluster has no credential for it: it was never let in' }
  const source = `secret ${place}/${secretName.hub}`
  const authType = klusterlet.spec?.registrationConfiguration?.registrationDriver?.authType ?? 'csr'
  if (!Object.hasOwn(drivers, authType))
    return { told: false, hub: 'the hub', why: `this version cannot use a credential of the kind ${authType}` }
  let hub: Api | undefined
  let server = 'the hub'
  try {
    const address = await hubFromKubeconfig(data, source, cli.env)
    server = address.server
    hub = drivers[authType as keyof typeof drivers].agent({}).asCluster(() => data, address, { userAgent: cli.program })
    await deny(cli, hub, cluster)
    await untilRevoked(cli, hub, cluster)
    return { told: true, hub: server }
  } catch (error) {
    if (cli.signal.aborted || error instanceof TimedOut) throw error
    const why = reasonFor(error)
    if (why === undefined) throw error
    return { told: false, hub: server, why }
  } finally {
    hub?.close()
  }
}

const reasonFor = (error: unknown): string | undefined => {
  if (isUnauthorized(error)) return 'it does not know the credential of this cluster any more'
  if (isForbidden(error)) return `it does not let this cluster say so: ${error.serverMessage}`
  if (error instanceof ConnectionError) return error.message
  return error instanceof Error && error.name === 'KubeconfigError' ? error.message : undefined
}

const deny = async (cli: Cli, hub: Api, cluster: string): Promise<void> => {
  const clusters = hub.of(ManagedCluster)
  for (let tries = 0; ; tries++) {
    const present = await clusters.find(cluster, { signal: cli.signal, timeoutMs: 15_000 })
    if (!present?.spec.hubAcceptsClient) return
    try {
      await clusters.update({ ...present, spec: { ...present.spec, hubAcceptsClient: false } }, { signal: cli.signal })
      return
    } catch (error) {
      if (!isConflict(error) || tries >= 10) throw error
    }
  }
}

const untilRevoked = (cli: Cli, hub: Api, cluster: string): Promise<void> =>
  cli.progress.step(
    `waiting for hub ${hub.connection.server} to let cluster ${cluster} go`,
    (step) =>
      untilObject(hub.of(ManagedCluster), cluster, { step, clock: cli.clock }, (present) => {
        const said = present && findCondition(present, Accepted.type)
        if (!present || said?.status === 'False') return { done: undefined }
        return { seen: said ? `${Accepted.type} is ${said.status}` : 'it has said nothing yet' }
      }).catch((error: unknown) => {
        // Without access it cannot be asked any more: that is what was waited for.
        if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return undefined
        throw error
      }),
    { timeoutMs: cli.flags.timeout * 1000, next: 'is the hub running? leave without its clean-up: --force' },
  )

/** The works that this cluster still carries out, by name. */
export const worksOn = async (local: Client, signal: AbortSignal): Promise<string[]> =>
  local
    .of(AppliedManifestWork)
    .list({ signal })
    .then(({ items }) => items.map(({ metadata, spec }) => spec?.manifestWorkName ?? metadata.name!).toSorted())
    .catch((error: unknown) => {
      if (isNotFound(error)) return []
      throw error
    })
