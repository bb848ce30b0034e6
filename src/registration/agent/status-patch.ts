import type { ManagedCluster } from '../../api/index.ts'
import { equal, findCondition, setConditions, type ConditionState } from '../../runtime/index.ts'
import { Available, ClockSynced, Joined } from '../contract.ts'
import type { Claim } from './claims.ts'
import type { Health } from './health.ts'
import { sameQuantity } from './quantity.ts'

/** What the agent knows of its cluster. Undefined is "not known yet", and changes nothing on the hub. */
export interface ClusterFacts {
  health: Health
  capacity?: Record<string, string> | undefined
  allocatable?: Record<string, string> | undefined
  claims?: Claim[] | undefined
  /** What the driver has to say of the credential. */
  conditions: readonly ConditionState[]
  /** Our heartbeat reaches the hub. */
  alive: boolean
  /** We have said that we joined, and somebody who takes the cluster away has said goodbye for us: that stands. */
  isTakenAway?: boolean | undefined
}

/** The merge patch that brings the status up to date; undefined when nothing differs. */
export const statusPatch = (cluster: ManagedCluster, facts: ClusterFacts, now: number): object | undefined => {
  const { uid, resourceVersion } = cluster.metadata
  const status = {
    ...conditionsPart(cluster, facts, now),
    ...versionPart(cluster, facts),
    ...resourcesPart(cluster, facts),
    ...claimsPart(cluster, facts),
  }
  // A list is replaced whole: with uid and version nobody else's condition gets lost.
  return Object.keys(status).length === 0 ? undefined : { metadata: { uid, resourceVersion }, status }
}

const conditionsPart = (cluster: ManagedCluster, facts: ClusterFacts, now: number): object => {
  const present = cluster.status?.conditions
  const states = [...(facts.isTakenAway ? [] : [Joined.joined()]), ...availability(cluster, facts), ...facts.conditions]
  const conditions = setConditions(present, states, { now })
  return conditions === present ? {} : { conditions }
}

const availability = (cluster: ManagedCluster, { health, alive }: ClusterFacts): ConditionState[] => {
  if (health.state === 'unsure') return []
  // The hub says Unknown when it misses our lease, or reads another time in it. To contradict it before that is mended
  // would go on for ever: it says Unknown again, we say True again.
  const unknown = findCondition(cluster, Available.type)?.status === 'Unknown'
  const clockIsOff = findCondition(cluster, ClockSynced.type)?.status === 'False'
  if (unknown && (!alive || clockIsOff)) return []
  return [
    health.state === 'ok'
      ? Available.available()
      : Available.apiServerDown(`The kube-apiserver is not ok: ${health.why}`),
  ]
}

const versionPart = (cluster: ManagedCluster, { health }: ClusterFacts): object =>
  health.state !== 'ok' || cluster.status?.version?.kubernetes === health.version
    ? {}
    : { version: { kubernetes: health.version } }

type Amounts = Readonly<Record<string, string | number>>

const resourcesPart = (cluster: ManagedCluster, facts: ClusterFacts): object => {
  const { capacity = {}, allocatable = {} } = (cluster.status ?? {}) as { capacity?: Amounts; allocatable?: Amounts }
  if (!facts.capacity || !facts.allocatable) return {}
  // Others add amounts of their own to the capacity, never to what is allocatable: that tells which ones were ours.
  const ours = (name: string): boolean => allocatable[name] !== undefined && facts.capacity![name] === undefined
  return {
    ...part('capacity', amountsPatch(capacity, facts.capacity, ours)),
    ...part(
      'allocatable',
      amountsPatch(allocatable, facts.allocatable, () => true),
    ),
  }
}

/** Changed amounts, and null for those that have to go. */
const amountsPatch = (present: Amounts, wanted: Amounts, remove: (name: string) => boolean): object =>
  Object.fromEntries([
    ...Object.entries(wanted).filter(([name, amount]) => !sameQuantity(present[name], amount)),
    ...Object.keys(present)
      .filter((name) => wanted[name] === undefined && remove(name))
      .map((name) => [name, null]),
  ])

const part = (name: string, patch: object): object => (Object.keys(patch).length ? { [name]: patch } : {})

const claimsPart = (cluster: ManagedCluster, { claims }: ClusterFacts): object =>
  claims === undefined || equal(cluster.status?.clusterClaims, claims) ? {} : { clusterClaims: claims }
