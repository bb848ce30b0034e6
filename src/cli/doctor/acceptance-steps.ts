import { finalizer, ManagedCluster, subject } from '../../api/index.ts'
import type { RoleBinding } from '../../kube/index.ts'
import { Accepted, Deleting, rbac } from '../../registration/contract.ts'
import { idOf } from '../../registration/agent/index.ts'
import { findCondition } from '../../runtime/index.ts'
import {
  acceptAgain,
  forgetCredential,
  joinAgain,
  kubectl,
  leave,
  startAgentAgain,
  startHubAgain,
  withoutFinalizer,
} from './advice.ts'
import { hasCredential } from './credential.ts'
import { known, perhaps, unseen, type Rule, type Step } from './faults.ts'
import { clusterOf, hubOf, isLetIn, notLetIn, type Snapshot } from './snapshot.ts'

type Of = Rule<Snapshot>

const isThere: Of = (s) => {
  if (clusterOf(s)) return undefined
  const credential = s.managed && 'is' in s.managed.credential && hasCredential(s)
  if (credential)
    return {
      fault: 'cluster-not-created',
      why: `the hub has no ManagedCluster ${s.name}, though its agent has a credential: it was deleted there, and the agent does not join again by itself`,
      ...forgetCredential(s),
    }
  return {
    fault: 'cluster-not-created',
    why: `the hub has no ManagedCluster ${s.name}: its agent has not asked yet`,
    ...(s.managed ? startAgentAgain(s) : joinAgain(s)),
  }
}

const isOurs: Of = (s) => {
  const cluster = clusterOf(s)
  const id = cluster && idOf(cluster)
  const ids = s.managed && perhaps(s.managed.ids)
  if (!cluster || !id || !ids || ids.includes(id)) return undefined
  const lives = cluster.spec.hubAcceptsClient === true
  return {
    fault: 'cluster-name-taken',
    why: `the name ${s.name} belongs to another cluster on the hub, with the id ${id}; this one is ${ids[0]}. ${
      lives
        ? 'The other one was let in: this one has to leave, and to join under another name'
        : 'The other one was never let in: if it is no more, its ManagedCluster can go'
    }`,
    ...(lives ? leave(s) : kubectl(s, 'hub', 'delete', 'managedcluster', s.name)),
  }
}

/** Taken off by the hub, as soon as it has cleaned up. */
const hubFinalizers = new Set<string>([finalizer.managedCluster, finalizer.managedClusterResources])
const cleaningUpMs = 15 * 60_000

const goes: Of = (s) => {
  const cluster = clusterOf(s)
  const { deletionTimestamp, finalizers = [] } = cluster?.metadata ?? {}
  if (!cluster || !deletionTimestamp) return undefined
  const since = `ManagedCluster ${s.name} is being deleted since ${deletionTimestamp}`
  const at = finalizers.findIndex((one) => !hubFinalizers.has(one))
  const object = { resource: ManagedCluster.plural, name: s.name }
  // What others hold is not ours to let go, but for the person to see; the hub's own come off by themselves.
  if (at >= 0 && finalizers.every((one) => !hubFinalizers.has(one)))
    return {
      fault: 'finalizer-stuck',
      why: `${since}, and only finalizer ${finalizers[at]} holds it: whoever put it there has not taken it off`,
      ...withoutFinalizer(s, 'hub', object, { finalizer: finalizers[at]!, at }),
    }
  if (s.now - Date.parse(deletionTimestamp) < cleaningUpMs)
    return unseen(`${since}: the hub cleans up after it; look again in a while`)
  const said = findCondition(cluster, Deleting.type)?.message ?? 'the hub says nothing about it'
  return { fault: 'finalizer-stuck', why: `${since}: ${said}`, ...startHubAgain(s) }
}

const namespaceOf = (s: Snapshot) => known(hubOf(s).namespaces).find(({ metadata }) => metadata.name === s.name)

/** Nothing can be made in a namespace that is on its way out, and so nobody can be let in. */
const namespaceStays: Of = (s) => {
  const since = clusterOf(s) && namespaceOf(s)?.metadata.deletionTimestamp
  if (!since) return undefined
  const [first] = known(hubOf(s).holders.get(s.name) ?? { is: [] })
  const going = `namespace ${s.name} on the hub is being deleted since ${since}`
  if (!first) return unseen(`${going}; nothing holds it: look again in a while`)
  const [finalizer = ''] = first.finalizers
  return {
    fault: 'namespace-terminating',
    why: `${going}, and ${first.resource} ${first.name} holds it with finalizer ${finalizer}`,
    ...withoutFinalizer(s, 'hub', { ...first, namespace: s.name }, { finalizer, at: 0 }),
  }
}

const namespaceIsThere: Of = (s) =>
  isLetIn(s) &&
  !namespaceOf(s) && {
    fault: 'namespace-missing',
    why: `namespace ${s.name} on the hub does not exist: the hub has not made it`,
    ...startHubAgain(s),
  }

const comesFirst = 'its namespace comes first'

const isAccepted: Of = (s) => {
  const cluster = clusterOf(s)
  if (!cluster || cluster.metadata.deletionTimestamp) return unseen('the hub has to know the cluster first')
  if (s.hub && 'is' in s.hub.namespaces && namespaceOf(s)?.metadata.deletionTimestamp) return unseen(comesFirst)
  const said = findCondition(cluster, Accepted.type)
  if (!cluster.spec.hubAcceptsClient)
    return said
      ? {
          fault: 'denied-after-accept',
          why: `cluster ${s.name} was let in once, and was denied on ${said.lastTransitionTime}`,
          ...acceptAgain(s),
        }
      : {
          fault: 'not-accepted',
          why: `cluster ${s.name} has asked to join, and nobody has let it in yet`,
          ...acceptAgain(s),
        }
  return (
    said?.status === 'False' &&
    said.reason === 'Error' && { fault: 'acceptance-failed', why: said.message, ...startHubAgain(s) }
  )
}

const hasRights: Of = (s) => {
  if (!isLetIn(s)) return unseen(notLetIn)
  const { namespaces, clusterRoles, clusterRoleBindings, roleBindings } = hubOf(s)
  const place = perhaps(namespaces)?.find(({ metadata }) => metadata.name === s.name)
  if (!place || place.metadata.deletionTimestamp) return unseen(comesFirst)
  const roles = known(clusterRoles)
  const bound = (all: readonly RoleBinding[], name: string): boolean =>
    all.some(
      ({ metadata, subjects }) =>
        metadata.name === name && subjects?.some((one) => one.name === subject.clusterGroup(s.name)),
    )
  const inPlace = known(roleBindings).filter(({ metadata }) => metadata.namespace === s.name)
  const missing = [
    ...[rbac.cluster(s.name), rbac.registrationRole, rbac.workRole]
      .filter((name) => !roles.has(name))
      .map((name) => `ClusterRole ${name}`),
    ...(bound(known(clusterRoleBindings), rbac.cluster(s.name)) ? [] : [`ClusterRoleBinding ${rbac.cluster(s.name)}`]),
    ...[rbac.registrationBinding(s.name), rbac.workBinding(s.name)]
      .filter((name) => !bound(inPlace, name))
      .map((name) => `RoleBinding ${s.name}/${name}`),
  ]
  return (
    missing.length > 0 && {
      fault: 'rbac-missing',
      why: `the hub has let cluster ${s.name} in, but its rights are not there: ${missing.join(', ')}`,
      ...startHubAgain(s),
    }
  )
}

/** The hub: that it knows the cluster, wants it, and has given it its place and its rights. */
export const acceptanceSteps: readonly Step<Snapshot>[] = [
  { step: 'the hub knows the cluster', rules: [isThere, isOurs, goes] },
  { step: 'the namespace of the cluster', rules: [namespaceStays, namespaceIsThere] },
  { step: 'the hub lets the cluster in', rules: [isAccepted] },
  { step: 'the rights of the cluster', rules: [hasRights] },
]
