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
  ServiceAccount,
  type Api,
  type Client,
} from '../kube/index.ts'
import { AwsError, failedFor } from '../aws/index.ts'
import { agentAccount, namespace, toldAnnotation } from '../operator/contract.ts'
import { Accepted, goodbye, secretKey, secretName } from '../registration/contract.ts'
import { drivers, hubFromKubeconfig, type AgentDriver } from '../registration/drivers/index.ts'
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
    hub = driverOf(cli, local, klusterlet).asCluster(() => data, address, { userAgent: cli.program })
    await deny(cli, hub, cluster)
    await untilRevoked(cli, hub, cluster)
    await noteTold(cli, local, place)
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

/** For the agent's own farewell, which has no credential any more and need not wait for one. Without the note it waits in vain. */
const noteTold = async (cli: Cli, local: Client, place: string): Promise<void> => {
  const merge = { metadata: { annotations: { [toldAnnotation]: 'true' } } }
  await local
    .of(Secret, place)
    .patch(secretName.hub, { merge }, { signal: cli.signal })
    .catch((error: unknown) => {
      if (!isNotFound(error) && !isForbidden(error)) throw error
    })
}

/** The driver of the cluster's agent, with what its pod has around it and this process has not. */
const driverOf = (cli: Cli, local: Client, klusterlet: Klusterlet): AgentDriver => {
  const { authType = 'csr', awsIrsa } = klusterlet.spec?.registrationConfiguration?.registrationDriver ?? {}
  if (authType !== 'awsirsa') return drivers[authType as keyof typeof drivers].agent({ env: cli.env })
  return drivers.awsirsa.agent({ ...awsIrsa, env: cli.env, webIdentity: agentToken(cli, local, klusterlet) })
}

interface TokenRequestStatus {
  status: { token: string }
}

/** A token of the agent's service account for AWS, as EKS mounts it in the pod: the agent's role needs no keys of a person. */
const agentToken =
  (cli: Cli, local: Client, klusterlet: Klusterlet) =>
  async (signal = cli.signal): Promise<string> => {
    const spec = { audiences: ['sts.amazonaws.com'], expirationSeconds: 3600 }
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec }
    const { status } = await local
      .of(ServiceAccount, agentNamespace(klusterlet))
      .subresource<TokenRequestStatus>(
        agentAccount.work(klusterlet.metadata.name!),
        'token',
        { method: 'POST', body },
        { signal },
      )
    return status.token
  }

const reasonFor = (error: unknown): string | undefined => {
  if (isUnauthorized(error)) return 'it does not know the credential of this cluster any more'
  if (isForbidden(error)) return `it does not let this cluster say so: ${error.serverMessage}`
  if (error instanceof AwsError) return `AWS gives this cluster no credential for it: ${error.what}`
  if (error instanceof ConnectionError) return error.message
  return error instanceof Error && error.name === 'KubeconfigError' ? error.message : undefined
}

/** How often the goodbye is tried. An agent of another make contradicts it, and must not keep its cluster from leaving. */
const goodbyes = 5

/**
 * Says goodbye, and takes the acceptance back. What is written in between makes the second step a conflict, so that the first one
 * stands; afterwards an agent reports no more.
 */
const deny = async (cli: Cli, hub: Api, cluster: string): Promise<void> => {
  const clusters = hub.of(ManagedCluster)
  const { signal, clock } = cli
  for (let tries = 0; ; tries++) {
    const present = await clusters.find(cluster, { signal, timeoutMs: 15_000 })
    if (!present?.spec.hubAcceptsClient) return
    try {
      const merge = goodbye(present, clock.now())
      const left =
        tries < goodbyes ? await clusters.patch(cluster, { merge }, { subresource: 'status', signal }) : present
      await clusters.update({ ...left, spec: { ...left.spec, hubAcceptsClient: false } }, { signal })
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
        if (failedFor(error, 'AccessDenied')) return undefined
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
