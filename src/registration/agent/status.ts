import { ManagedCluster, type ClusterClaim } from '../../api/index.ts'
import type { Api, Client, Node } from '../../kube/index.ts'
import {
  Controller,
  equal,
  findCondition,
  watching,
  type Clock,
  type ConditionState,
  type Informer,
  type Logger,
  type Metrics,
} from '../../runtime/index.ts'
import { Joined, silenceMs } from '../contract.ts'
import { claimsFor, type ClaimRules } from './claims.ts'
import { healthCheck } from './health.ts'
import { sum } from './quantity.ts'
import { statusPatch, type ClusterFacts } from './status-patch.ts'

/** What the agent reads of the managed cluster. */
export interface LocalFacts {
  readonly clusterId: string
  readonly nodes: Informer<Node>
  readonly claims: Informer<ClusterClaim>
}

export interface StatusOptions {
  hub: Api
  cluster: string
  clusters: Informer<ManagedCluster>
  local: Client
  facts: LocalFacts
  claimRules: ClaimRules
  healthCheckPeriodMs: number
  /** What the driver last said of the credential. */
  conditions: () => readonly ConditionState[]
  /** When the hub last had our lease. */
  lastHeartbeat: () => number | undefined
  clock: Clock
  log: Logger
  metrics: Metrics
}

/** Amounts of a node, without the rest of it: there may be thousands. */
export const slimNode = ({ metadata, spec, status }: Node): Node => ({
  metadata: { name: metadata.name, uid: metadata.uid, resourceVersion: metadata.resourceVersion },
  spec: { unschedulable: spec?.unschedulable },
  status: { capacity: status?.capacity, allocatable: status?.allocatable },
})

/** Keeps the ManagedCluster's status true, one patch at a time, and sends nothing when nothing differs. */
export const statusController = (options: StatusOptions): Controller => {
  const { hub, cluster: name, clusters, facts, clock, log, metrics } = options
  const health = healthCheck(options.local, clock, options.healthCheckPeriodMs)
  const cut = cutClaims(log)
  const one = (): string[] => [name]
  let written: ManagedCluster | undefined
  let hasJoined = false
  return new Controller({
    name: 'agent-status',
    workers: 1,
    clock,
    log,
    metrics,
    queue: { baseDelayMs: 50, maxDelayMs: 30_000 },
    watches: [
      watching(clusters, one),
      watching(facts.claims, one),
      watching(facts.nodes, one, (node, old) => !old || !equal(amountsOf(node), amountsOf(old))),
    ],
    reconcile: async (_key, signal) => {
      const found = await health.current(signal)
      const cluster = newest(clusters.get(name), written)
      if (!cluster) return {}
      const isTakenAway = hasJoined && findCondition(cluster, Joined.type)?.reason === Joined.left().reason
      const told = { health: found, isTakenAway, ...gather(options, cluster, cut) }
      const patch = statusPatch(cluster, told, clock.now())
      if (patch) written = await hub.of(ManagedCluster).patch(name, { merge: patch }, { subresource: 'status', signal })
      hasJoined = true
      return { requeueAfterMs: health.dueInMs() }
    },
  })
}

/** What we wrote is known before the watch tells of it: without it the next report would be a conflict. */
const newest = (cached?: ManagedCluster, written?: ManagedCluster): ManagedCluster | undefined => {
  if (!cached || !written || cached.metadata.uid !== written.metadata.uid) return cached
  return Number(written.metadata.resourceVersion) > Number(cached.metadata.resourceVersion) ? written : cached
}

const amountsOf = ({ spec, status }: Node): unknown => [spec?.unschedulable, status?.capacity, status?.allocatable]

const gather = (
  { facts, claimRules, conditions, lastHeartbeat, clock }: StatusOptions,
  cluster: ManagedCluster,
  cut: (left: string[]) => void,
): Omit<ClusterFacts, 'health'> => {
  const nodes = facts.nodes.hasSynced ? facts.nodes.list() : undefined
  const beat = lastHeartbeat()
  const told = claimsFor(facts.clusterId, facts.claims.list(), claimRules)
  cut(told.left)
  return {
    capacity: nodes && sum(nodes.map(({ status }) => status?.capacity ?? {})),
    allocatable:
      nodes && sum(nodes.filter(({ spec }) => !spec?.unschedulable).map(({ status }) => status?.allocatable ?? {})),
    // Before the claims are known, what the hub has of them stays. A new cluster tells its id at once.
    claims: facts.claims.hasSynced || !cluster.status?.clusterClaims?.length ? told.claims : undefined,
    conditions: conditions(),
    alive: beat !== undefined && clock.now() - beat < silenceMs(cluster.spec.leaseDurationSeconds),
  }
}

const cutClaims = (log: Logger): ((left: string[]) => void) => {
  let said = ''
  return (left) => {
    if (said === (said = left.join())) return
    if (left.length)
      log.warn('more claims than the hub is told of; raise the limit or reserve a suffix', { left: left.slice(0, 20) })
  }
}
