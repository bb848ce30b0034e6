import { ManagedServiceAccount } from '../../api/index.ts'
import { isAlreadyExists, keyOf } from '../../kube/index.ts'
import {
  equal,
  findCondition,
  inParallel,
  isTrue,
  type ConditionState,
  type ReconcileResult,
} from '../../runtime/index.ts'
import { AllPresent, mark, parentLabel, TokenReported, type Status } from '../contract.ts'
import { currentAccount, fieldManager, index, parentKeyOf, type Hub } from './hub.ts'
import { clustersOf, type Place } from './members.ts'
import { report, statusChange } from './report.ts'

type Trouble = NonNullable<Status['troubles']>[number]

/** More troubles than this help nobody. */
const mostTroubles = 50
/** How often counts are written: while a hundred clusters report, nobody reads each number. */
const countEveryMs = 1000

/** Children of an object, by its name or its UID: marks that were taken off one by one still lead here. */
export const childrenOf = (hub: Hub, key: string, uid: string | undefined): ManagedServiceAccount[] => {
  const found = [...hub.accounts.by(index.parent, key), ...(uid ? hub.accounts.by(index.parent, uid) : [])]
  return [...new Map(found.map((child) => [keyOf(child), child])).values()]
}

const isChild = ({ metadata }: ManagedServiceAccount, parent: ManagedServiceAccount): boolean =>
  metadata.labels?.[parentLabel] === parent.metadata.uid

/** One that was made from an object of the same name that is no more. */
const isOlder = (child: ManagedServiceAccount, parent: ManagedServiceAccount): boolean =>
  parentKeyOf(child) === keyOf(parent) && child.metadata.labels?.[parentLabel] !== undefined && !isChild(child, parent)

const isMarked = (child: ManagedServiceAccount, parent: ManagedServiceAccount): boolean =>
  isChild(child, parent) || (parentKeyOf(child) === keyOf(parent) && !isOlder(child, parent))

/** Everything of the spec but its end: the parent's end is the end of all. */
const childSpec = ({ spec = {} }: ManagedServiceAccount): NonNullable<ManagedServiceAccount['spec']> => ({
  ...(spec.audiences && { audiences: spec.audiences }),
  ...(spec.rotation && { rotation: spec.rotation }),
})

const desired = (parent: ManagedServiceAccount, cluster: string): ManagedServiceAccount => ({
  metadata: {
    name: parent.metadata.name,
    namespace: cluster,
    labels: { [parentLabel]: parent.metadata.uid! },
    annotations: { [mark.parent]: keyOf(parent) },
  },
  spec: childSpec(parent),
})

/** Makes, mends or replaces the child on one cluster; says why where there can be none. */
const keepChild = async (
  hub: Hub,
  parent: ManagedServiceAccount,
  cluster: string,
  signal: AbortSignal,
): Promise<Trouble | undefined> => {
  const wanted = desired(parent, cluster)
  const name = wanted.metadata.name!
  const key = `${cluster}/${name}`
  const children = hub.client.of(ManagedServiceAccount, cluster)
  const present = currentAccount(hub, key)
  if (!present) {
    try {
      hub.written.wrote(key, undefined, await children.create(wanted, { fieldManager, signal }))
    } catch (error) {
      if (!isAlreadyExists(error)) throw error // the watch brings it
    }
    return undefined
  }
  if (present.metadata.deletionTimestamp) return undefined
  if (isOlder(present, parent)) {
    await children.delete(name, { preconditions: { uid: present.metadata.uid }, signal })
    return undefined // its end brings us back
  }
  if (!isMarked(present, parent))
    return {
      cluster,
      reason: 'NameTaken',
      message: `ManagedServiceAccount ${key} exists and was not made from this one: it is left as it is; delete it, or choose another name`,
    }
  const { labels, annotations } = wanted.metadata
  const isSame = isChild(present, parent) && parentKeyOf(present) === keyOf(parent) && equal(present.spec, wanted.spec)
  if (isSame) return undefined
  const { uid, resourceVersion } = present.metadata
  const json = [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
    { op: 'add', path: '/metadata/labels', value: { ...present.metadata.labels, ...labels } },
    { op: 'add', path: '/metadata/annotations', value: { ...present.metadata.annotations, ...annotations } },
    { op: 'add', path: '/spec', value: wanted.spec },
  ]
  hub.written.wrote(key, present, await children.patch(name, { json }, { fieldManager, signal }))
  return undefined
}

/** Takes children away. */
export const removeChildren = async (
  hub: Hub,
  children: readonly ManagedServiceAccount[],
  signal: AbortSignal,
): Promise<void> =>
  inParallel(
    16,
    children
      .filter(({ metadata }) => !metadata.deletionTimestamp)
      .map(({ metadata: { name, namespace, uid } }) => async () => {
        hub.written.forget(`${namespace}/${name}`)
        await hub.client.of(ManagedServiceAccount, namespace).delete(name!, { preconditions: { uid }, signal })
      }),
  )

/** An object in a namespace that is bound to sets: one of the same name on each of their clusters, and how they all stand. */
export const keepSetAccount = async (
  hub: Hub,
  parent: ManagedServiceAccount,
  place: Extract<Place, { kind: 'sets' }>,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  const clusters = clustersOf(hub, place.sets)
  const wanted = new Set(clusters)
  const obsolete = childrenOf(hub, keyOf(parent), parent.metadata.uid).filter(
    ({ metadata }) => !wanted.has(metadata.namespace!) || metadata.name !== parent.metadata.name,
  )
  const clashes = new Map<string, Trouble>()
  let failure: unknown
  try {
    await inParallel(
      16,
      clusters.map((cluster) => async () => {
        const trouble = await keepChild(hub, parent, cluster, signal)
        if (trouble) clashes.set(cluster, trouble)
      }),
    )
    await removeChildren(hub, obsolete, signal)
  } catch (error) {
    failure = error
  }
  const { states, fields } = fleetState(hub, parent, { clusters, clashes, missing: place.missing })
  const now = hub.clock.now()
  const change = statusChange(parent, states, fields, now)
  const wait = (hub.countedAt.get(keyOf(parent)) ?? 0) + countEveryMs - now
  if (change && wait <= 0) {
    hub.countedAt.set(keyOf(parent), now)
    await report(hub, parent, states, fields, signal)
  }
  if (failure) throw failure
  return change && wait > 0 ? { requeueAfterMs: wait } : {}
}

interface Fleet {
  clusters: readonly string[]
  clashes: ReadonlyMap<string, Trouble>
  missing: readonly string[]
}

/** How far it is on each cluster. */
const fleetState = (
  hub: Hub,
  parent: ManagedServiceAccount,
  { clusters, clashes, missing }: Fleet,
): { states: ConditionState[]; fields: { clusters: Status['clusters']; troubles: Trouble[] } } => {
  const troubles: Trouble[] = []
  const counts = { selected: clusters.length, replicated: 0, present: 0, reported: 0 }
  for (const cluster of clusters) {
    const child = clashes.has(cluster) ? undefined : currentAccount(hub, `${cluster}/${parent.metadata.name}`)
    const ofSpec = child && childIsReported(child)
    if (child) counts.replicated++
    if (child && isTrue(child, AllPresent.type)) counts.present++
    if (ofSpec) counts.reported++
    else if (troubles.length < mostTroubles) troubles.push(clashes.get(cluster) ?? troubleOf(cluster, child))
  }
  return { states: [verdict(counts, troubles, missing)], fields: { clusters: counts, troubles } }
}

/** Its token is on the hub, and for the spec as it is now. */
const childIsReported = (child: ManagedServiceAccount): boolean =>
  isTrue(child, AllPresent.type) &&
  isTrue(child, TokenReported.type) &&
  findCondition(child, TokenReported.type)?.observedGeneration === child.metadata.generation

const troubleOf = (cluster: string, child: ManagedServiceAccount | undefined): Trouble => {
  const said = child?.status?.conditions?.find(({ status }) => status !== 'True')
  if (said) return { cluster, reason: said.reason, message: said.message }
  return { cluster, reason: 'WaitingForAgent', message: `the agent of cluster ${cluster} has not reported yet` }
}

const verdict = (
  { selected, present }: { selected: number; present: number },
  troubles: readonly Trouble[],
  missing: readonly string[],
): ConditionState => {
  const unbound = missing.length > 0 ? `; there is no ManagedClusterSet ${missing.join(', ')}` : ''
  if (selected === 0) return AllPresent.noClusters(`the bound sets have no cluster${unbound}`)
  const counted = `${present} of ${selected} clusters have the service account`
  if (present === selected && !unbound) return AllPresent.allPresent(counted)
  if (present === selected) return AllPresent.missing(`${counted}${unbound}`)
  const names = troubles.map(({ cluster }) => cluster)
  const some = `${names.slice(0, 10).join(', ')}${names.length > 10 ? ` and ${names.length - 10} more` : ''}`
  return AllPresent.missing(`${counted}; not yet: ${some}; status.troubles says why${unbound}`)
}
