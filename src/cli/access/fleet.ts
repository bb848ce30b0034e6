/** What was granted on the clusters of a hub, read from its permissions: nothing is asked of the clusters themselves. */
import {
  ClusterPermission,
  ClusterSetPermission,
  ManagedCluster,
  ManagedClusterAddOn,
  ManagedClusterSet,
  ManagedServiceAccount,
  isMember,
} from '../../api/index.ts'
import {
  ClusterRole,
  isForbidden,
  isNotFound,
  Role,
  type Client,
  type KubeObject,
  type Resource,
} from '../../kube/index.ts'
import { copiesOf, grantsOf, specOf, type Grant, type GrantState, type RulesOf } from '../../permissions/contract.ts'
import { addOnName, defaultAgentNamespace } from '../../serviceaccounts/contract.ts'
import type { Cli } from '../command.ts'
import { CliError } from '../errors.ts'
import { missing } from '../names.ts'

/** A grant on one cluster. This is also what is saved as JSON, to be compared with later. */
export interface FleetGrant extends Grant {
  readonly cluster: string
  /** The account on the cluster that a ManagedServiceAccount is. */
  readonly serviceAccount?: { readonly namespace: string; readonly name: string } | undefined
}

/** Which clusters are meant; all of them when neither is said. */
export interface Scope {
  readonly clusters?: readonly string[] | undefined
  readonly clusterSet?: string | undefined
}

export interface Fleet {
  readonly clusters: readonly string[]
  readonly grants: readonly FleetGrant[]
  /** Where ManagedServiceAccounts of a cluster have their accounts. */
  readonly accountNamespace: (cluster: string) => string
}

/** Grants that are in force or on their way; the others give nothing to anybody. */
export const isGranted = ({ state }: Pick<FleetGrant, 'state'>): boolean => state === 'applied' || state === 'pending'

type Reader = <T extends KubeObject>(
  kind: Resource<T>,
  without: string,
  options?: { fieldSelector?: string; metadataOnly?: true },
) => Promise<T[]>

/** Lists what one may list; of the rest it says what is missing without it. */
export const readerFor =
  (cli: Cli, client: Client): Reader =>
  async (kind, without, options = {}) => {
    try {
      return (await client.of(kind).list({ signal: cli.signal, ...options })).items
    } catch (error) {
      // A hub of another make need not have every kind: then nothing comes from it.
      if (isNotFound(error)) return []
      if (!isForbidden(error)) throw error
      cli.progress.warn(`you may not list ${kind.plural} on the hub: ${without}`)
      return []
    }
  }

export const readFleet = async (cli: Cli, client: Client, scope: Scope): Promise<Fleet> => {
  const { signal } = cli
  const readable = readerFor(cli, client)
  const unseen = 'what comes from them is missing here'
  const [clusters, sets, permissions, setPermissions, addOns, accounts] = await Promise.all([
    client.of(ManagedCluster).list({ signal }),
    readable(ManagedClusterSet, unseen),
    permissionsIn(client, scope, signal),
    readable(ClusterSetPermission, unseen),
    readable(ManagedClusterAddOn, 'the usual namespace of ManagedServiceAccounts is assumed', {
      fieldSelector: `metadata.name=${addOnName}`,
    }),
    readable(ManagedServiceAccount, 'whether they exist is not known', { metadataOnly: true }),
  ])
  const chosen = await clustersIn(scope, clusters.items, sets)
  const rulesOf = [...permissions, ...setPermissions].some((one) => specOf(one).roleRefs?.length)
    ? await hubRules(readable)
    : undefined
  const said = new Map(addOns.map(({ metadata, status }) => [metadata.namespace!, status?.namespace]))
  const accountNamespace = (cluster: string): string => said.get(cluster) || defaultAgentNamespace
  const place = accountPlaces(accountNamespace, accounts)
  const names = new Set(chosen.map(({ metadata }) => metadata.name!))
  const grants = [
    ...permissions
      .filter(({ metadata }) => names.has(metadata.namespace!))
      .flatMap((one) => grantsOf(one, rulesOf).map((grant) => ({ ...grant, cluster: one.metadata.namespace! }))),
    ...setPermissions.flatMap((one) => {
      const set = sets.find(({ metadata }) => metadata.name === one.spec.clusterSet)
      const members = set ? chosen.filter((cluster) => isMember(set, cluster)) : []
      return members.flatMap((cluster) =>
        grantsOf(one, rulesOf).map((grant) => ({
          ...grant,
          cluster: cluster.metadata.name!,
          state: stateOn(one, cluster, grant.state),
        })),
      )
    }),
  ]
  return { clusters: [...names].toSorted(), grants: grants.map(place).toSorted(inOrder), accountNamespace }
}

const permissionsIn = async (
  client: Client,
  { clusters }: Scope,
  signal: AbortSignal,
): Promise<readonly ClusterPermission[]> => {
  // Who may read the permissions of one cluster need not be allowed to read them all.
  const lists = await Promise.all(
    (clusters?.length ? clusters : [undefined]).map((one) => client.of(ClusterPermission, one).list({ signal })),
  ).catch((cause: unknown) => {
    if (!isNotFound(cause)) throw cause
    const next = 'the hub must be one that delivers RBAC: lanyard hub installs the kind'
    throw new CliError(`hub ${client.connection.server} knows no ClusterPermissions`, { next, cause })
  })
  return lists.flatMap(({ items }) => items)
}

const clustersIn = async (
  { clusters = [], clusterSet }: Scope,
  all: readonly ManagedCluster[],
  sets: readonly ManagedClusterSet[],
): Promise<readonly ManagedCluster[]> => {
  const known = all.map(({ metadata }) => metadata.name!).toSorted()
  for (const name of clusters) if (!known.includes(name)) throw await missing('cluster', name, known)
  if (!clusterSet) return clusters.length ? all.filter(({ metadata }) => clusters.includes(metadata.name!)) : all
  const set = sets.find(({ metadata }) => metadata.name === clusterSet)
  if (!set) {
    const names = sets.map(({ metadata }) => metadata.name!)
    throw await missing('cluster set', clusterSet, names)
  }
  return all.filter((cluster) => isMember(set, cluster))
}

/** The rules of roles of the hub, gathered ones resolved, as the hub delivers them. */
export const hubRules = async (readable: Reader): Promise<RulesOf> => {
  const without = 'what permissions copy from them is not known here'
  const [clusterRoles, roles] = await Promise.all([readable(ClusterRole, without), readable(Role, without)])
  const byName = new Map(clusterRoles.map((role) => [role.metadata.name!, role]))
  const byKey = new Map(roles.map((role) => [`${role.metadata.namespace}/${role.metadata.name}`, role]))
  const hub = {
    clusterRoles: { get: (name: string) => byName.get(name), list: () => clusterRoles },
    roles: { get: (key: string) => byKey.get(key) },
  }
  return ({ kind, name, namespace }) =>
    copiesOf({ roleRefs: [{ kind: kind as 'Role', name, namespace }] }, hub).copies[0]?.rules
}

/** How far a set's permission is on one cluster: it names those that are behind, unless there are too many. */
const stateOn = (permission: ClusterSetPermission, cluster: ManagedCluster, state: GrantState): GrantState => {
  if (state === 'invalid' || state === 'waits') return state
  if (!cluster.spec.hubAcceptsClient) return 'pending'
  const { clusters, troubles = [] } = permission.status ?? {}
  const allNamed = clusters !== undefined && clusters.selected - clusters.applied === troubles.length
  return allNamed && !troubles.some((one) => one.cluster === cluster.metadata.name) ? 'applied' : 'pending'
}

/** Fills in which account a ManagedServiceAccount is; without one, its binding is not delivered. */
const accountPlaces = (
  accountNamespace: Fleet['accountNamespace'],
  accounts: readonly KubeObject[],
): ((grant: FleetGrant) => FleetGrant) => {
  const present = new Set(accounts.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`))
  return (grant) => {
    if (grant.subject.kind !== 'ManagedServiceAccount') return grant
    const { name } = grant.subject
    const namespace = accountNamespace(grant.cluster)
    const state = grant.state === 'applied' && !present.has(`${grant.cluster}/${name}`) ? 'pending' : grant.state
    return { ...grant, state, serviceAccount: { namespace, name } }
  }
}

const inOrder = (a: FleetGrant, b: FleetGrant): number =>
  a.cluster.localeCompare(b.cluster) ||
  a.subject.kind.localeCompare(b.subject.kind) ||
  a.subject.name.localeCompare(b.subject.name) ||
  a.through.name.localeCompare(b.through.name) ||
  a.field.localeCompare(b.field, undefined, { numeric: true })
