import { ClusterManager, label, ManagedCluster, ManifestWork, signer } from '../../api/index.ts'
import {
  ApiError,
  CertificateSigningRequest,
  ClusterRole,
  ClusterRoleBinding,
  isForbidden,
  isInvalid,
  isNotFound,
  Lease,
  Namespace,
  RoleBinding,
  servedResources,
  type Client,
} from '../../kube/index.ts'
import { namespace } from '../../operator/contract.ts'
import { leaseName, rbac } from '../../registration/contract.ts'
import { finalizer } from '../../api/index.ts'
import { pinsOf } from '../ca.ts'
import type { Cluster } from '../cluster.ts'
import { Deployment } from '../deployment.ts'
import { gatherAddOns } from './add-on-view.ts'
import { perhaps, type Seen } from './faults.ts'
import { kindsOf, orNone, patienceMs, seen, silenceOf } from './look.ts'
import type { Holder, HubView } from './snapshot.ts'

/** The lease of the hub's replicas. */
const leaderLease = 'lanyard-hub'

/** Looks at a hub: all of its clusters, or one. A few lists, whatever the number of clusters. */
export const gatherHub = async (
  { client, connection }: Pick<Cluster, 'client' | 'connection'>,
  { name, namespace: hubNamespace = namespace.hub }: { name: string | undefined; namespace?: string | undefined },
  signal: AbortSignal,
): Promise<HubView> => {
  const silence = await silenceOf(client, 'hub', signal)
  const call = { timeoutMs: patienceMs, signal }
  const see = <T>(look: () => Promise<T>): Promise<Seen<T>> =>
    silence ? Promise.resolve({ unseen: silence.why }) : seen(look(), signal)
  const items = <T>(list: Promise<{ items: T[] }>): Promise<T[]> => list.then((all) => all.items)
  const ofCluster = `${label.clusterName}${name ? `=${name}` : ''}`
  const named = name ? { fieldSelector: `metadata.name=${name}` } : {}
  const [
    kinds,
    managers,
    deployments,
    leader,
    admission,
    clusters,
    namespaces,
    clusterRoles,
    clusterRoleBindings,
    roleBindings,
    requests,
    leases,
    works,
    addOns,
  ] = await Promise.all([
    see(() => kindsOf(client, signal)),
    see(() => orNone(client.of(ClusterManager).list(call))),
    see(async () =>
      (
        await Promise.all([namespace.operator, hubNamespace].map((one) => items(client.of(Deployment, one).list(call))))
      ).flat(),
    ),
    see(() => client.of(Lease, hubNamespace).find(leaderLease, call)),
    see(() => whyNotAdmitted(client, signal)),
    see(() => items(client.of(ManagedCluster).list({ ...named, ...call }))),
    see(() => items(client.of(Namespace).list({ ...named, ...call }))),
    see(() => roleNames(client, ofCluster, signal)),
    see(() => items(client.of(ClusterRoleBinding).list({ labelSelector: ofCluster, ...call }))),
    see(() => items(client.of(RoleBinding, name).list({ labelSelector: ofCluster, ...call }))),
    see(() =>
      items(
        client.of(CertificateSigningRequest).list({
          labelSelector: `${ofCluster},!${label.addOnName}`,
          fieldSelector: `spec.signerName=${signer.kubeApiServerClient}`,
          ...call,
        }),
      ),
    ),
    see(() => items(client.of(Lease, name).list({ fieldSelector: `metadata.name=${leaseName}`, ...call }))),
    see(() => items(client.of(ManifestWork, name).list(call))),
    gatherAddOns(client, name, see, signal),
  ])
  const known = new Set(perhaps(clusters)?.map(({ metadata }) => metadata.name))
  const going = (perhaps(namespaces) ?? []).filter(
    ({ metadata }) => metadata.deletionTimestamp && known.has(metadata.name),
  )
  const holders = await Promise.all(
    going.map(
      async ({ metadata }) => [metadata.name!, await see(() => holdersIn(client, metadata.name!, signal))] as const,
    ),
  )
  return {
    server: connection.server,
    namespace: hubNamespace,
    caHash: await caHashOf(connection, signal),
    silence,
    kinds,
    managers,
    deployments,
    leader,
    admission,
    clusters,
    namespaces,
    holders: new Map(holders),
    clusterRoles,
    clusterRoleBindings,
    roleBindings,
    requests,
    leases,
    works,
    addOns,
  }
}

const caHashOf = async ({ credentials }: Cluster['connection'], signal: AbortSignal): Promise<string | undefined> => {
  const { ca } = await credentials({ signal })
  return ca ? pinsOf(ca).at(-1)?.hash : undefined
}

const roleNames = async (client: Client, ofCluster: string, signal: AbortSignal): Promise<ReadonlySet<string>> => {
  const call = { timeoutMs: patienceMs, metadataOnly: true, signal }
  const roles = client.of(ClusterRole)
  const lists = await Promise.all([
    roles.list({ labelSelector: ofCluster, ...call }),
    ...[rbac.registrationRole, rbac.workRole].map((one) =>
      roles.list({ fieldSelector: `metadata.name=${one}`, ...call }),
    ),
  ])
  return new Set(lists.flatMap(({ items }) => items.map(({ metadata }) => metadata.name!)))
}

/** Tries a write that is admitted and not stored, because the webhooks are asked about it as about any other. */
const whyNotAdmitted = async (client: Client, signal: AbortSignal): Promise<string | undefined> => {
  const trial = { metadata: { generateName: 'doctor-' }, spec: { hubAcceptsClient: false } }
  try {
    await client.of(ManagedCluster).create(trial, { dryRun: true, timeoutMs: 3 * patienceMs, signal })
    return undefined
  } catch (error) {
    // A refusal is an answer, whoever gave it.
    if (isInvalid(error)) return undefined
    if (isForbidden(error) || isNotFound(error) || !(error instanceof ApiError) || error.status < 500) throw error
    return error.serverMessage
  }
}

/** Held by the hub or by agents, who take these off when they are done. */
const passing = new Set<string>(Object.values(finalizer))

/** What is in a namespace and cannot go, that nobody of ours will let go. */
const holdersIn = async (client: Client, place: string, signal: AbortSignal): Promise<Holder[]> => {
  const { resources } = await servedResources(client, { timeoutMs: patienceMs, signal })
  const kinds = resources.filter(({ namespaced, verbs }) => namespaced && verbs.includes('list'))
  const lists = await Promise.all(
    kinds.map(async (kind) => {
      const { items } = await client.of(kind, place).list({ metadataOnly: true, timeoutMs: patienceMs, signal })
      const resource = kind.group ? `${kind.plural}.${kind.group}` : kind.plural
      return items.map(({ metadata }) => ({ resource, name: metadata.name!, finalizers: metadata.finalizers ?? [] }))
    }),
  )
  return lists.flat().filter(({ finalizers }) => finalizers.length > 0 && !finalizers.some((one) => passing.has(one)))
}
