import type { AppliedManifestWork, ManifestWork } from '../../api/index.ts'
import type { Api, Client } from '../../kube/index.ts'
import { Freshest, type Clock, type Informer, type Logger, type Metrics } from '../../runtime/index.ts'
import { hubHashOf, type Executor } from '../contract.ts'
import type { ContentionLimits } from './contention.ts'
import { DriftWatches } from './drift.ts'
import { Kinds } from './kinds.ts'
import { meaningOf, newMemory, type WorkMemory } from './memory.ts'
import { workMetrics, type WorkMetrics } from './metrics.ts'
import { Namespaces } from './namespaces.ts'
import { NewKinds } from './new-kinds.ts'

export interface WorkAgentOptions {
  hub: Api
  /** The hub's address exactly as the agent's kubeconfig has it: it marks what belongs to this hub. */
  hubServer: string
  /** The managed cluster. */
  local: Client
  /** Its name, which is the namespace of its works on the hub. */
  cluster: string
  /** Which records are this agent's, should it move to another hub; unless told, those of this hub. */
  agentId?: string | undefined
  /** Requests to the managed cluster under way at the same time, for one work. */
  concurrency?: number | undefined
  /** As whom works that name nobody are executed; as the agent itself unless told. */
  executorDefault?: Executor | undefined
  /** How long objects stay whose work is gone from the hub without a word. */
  evictionGraceMs?: number | undefined
  /** Where a kind cannot be watched, how often it is looked at. */
  resyncMs?: number | undefined
  /** Reported values are brought up to date at most this often. */
  feedbackMs?: number | undefined
  /** Repairs of one object in a minute after which it is left alone for a while. */
  repairsPerMinute?: number | undefined
  /** Lists and maps may be reported as JSON text. */
  rawFeedbackJson?: boolean | undefined
  /** Told what the agent waits for before it can begin; undefined once it works. */
  onWaiting?: ((forWhat: string | undefined) => void) | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
  log?: Logger | undefined
  metrics: Metrics
}

/** What the parts of the agent share. */
export interface Agent {
  readonly hub: Api
  readonly local: Client
  readonly cluster: string
  readonly hubHash: string
  readonly agentId: string
  readonly concurrency: number
  readonly executorDefault: Executor | undefined
  readonly evictionGraceMs: number
  readonly resyncMs: number
  readonly limits: ContentionLimits
  readonly rawFeedbackJson: boolean
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
  readonly metrics: WorkMetrics
  readonly applied: Informer<AppliedManifestWork>
  readonly kinds: Kinds
  readonly drift: DriftWatches
  readonly newKinds: NewKinds
  readonly namespaces: Namespaces
  readonly memories: Map<string, WorkMemory>
  readonly written: Freshest<ManifestWork>
  readonly records: Freshest<AppliedManifestWork>
  /** By record, what keeps it from going. */
  readonly troubles: Map<string, string>
  /** The newest state of a work that we know. */
  workOf(name: string): ManifestWork | undefined
  memoryOf(name: string): WorkMemory
  enqueueWork(name: string): void
}

/** Puts the parts together; the informers and queues are given. */
export const agentFrom = (
  options: WorkAgentOptions,
  parts: {
    works: Informer<ManifestWork>
    applied: Informer<AppliedManifestWork>
    clock: Clock
    log: Logger
    enqueue: (name: string) => void
    enqueueRecord: (name: string) => void
  },
): Agent => {
  const { hub, local, cluster, feedbackMs = 2000, random = Math.random } = options
  const { works, applied, clock, log, enqueue, enqueueRecord } = parts
  const hubHash = hubHashOf(options.hubServer)
  const memories = new Map<string, WorkMemory>()
  const written = new Freshest<ManifestWork>()
  const kinds = new Kinds(local)
  const later = new Set<string>()

  /** Values that change all the time are reported from time to time. */
  const enqueueForValues = (name: string, memory: WorkMemory): void => {
    const wait = memory.reportedAt + feedbackMs - clock.now()
    if (wait <= 0) return enqueue(name)
    if (later.has(name)) return
    later.add(name)
    clock.after(wait, () => {
      later.delete(name)
      enqueue(name)
    })
  }
  const drift = new DriftWatches({
    client: local,
    clock,
    log,
    onSeen: (owner, id, object) => {
      const [kind, name] = [owner.slice(0, owner.indexOf('/')), owner.slice(owner.indexOf('/') + 1)]
      if (kind === 'record') return enqueueRecord(name)
      const work = memories.get(name)
      const memory = work?.manifests.get(id)
      const meaning = object ? meaningOf(object, memory) : 'look'
      if (meaning === 'look' || !work || !memory?.seen) return enqueue(name)
      if (meaning === 'values') return enqueueForValues(name, work)
      memory.seen.resourceVersion = object!.metadata.resourceVersion
      memory.behind = undefined
      if (memory.failures === 0 && memory.contention.until <= clock.now()) memory.lookAt = Infinity
    },
  })
  const newKinds = new NewKinds({
    client: local,
    clock,
    log,
    onChange: (waiting) => {
      kinds.forget()
      for (const name of waiting) {
        for (const memory of memories.get(name)?.manifests.values() ?? []) {
          if (memory.seen || memory.failures === 0 || memory.lookAt === Infinity) continue
          memory.failures = 0
          memory.lookAt = 0
        }
        enqueue(name)
      }
    },
  })
  return {
    hub,
    local,
    cluster,
    hubHash,
    agentId: options.agentId ?? hubHash,
    concurrency: options.concurrency ?? 8,
    executorDefault: options.executorDefault,
    evictionGraceMs: options.evictionGraceMs ?? 60 * 60_000,
    resyncMs: options.resyncMs ?? 60_000,
    limits: { repairsPerMinute: options.repairsPerMinute ?? 10 },
    rawFeedbackJson: options.rawFeedbackJson ?? false,
    clock,
    random,
    log,
    metrics: workMetrics(options.metrics, () => works.list(), drift),
    applied,
    kinds,
    drift,
    newKinds,
    namespaces: new Namespaces({ client: local, clock, log, onChange: (works) => [...works].forEach(enqueue) }),
    memories,
    written,
    records: new Freshest(),
    troubles: new Map(),
    workOf: (name) => written.of(name, works.get(`${cluster}/${name}`)),
    memoryOf: (name) => {
      let memory = memories.get(name)
      if (!memory) memories.set(name, (memory = newMemory()))
      return memory
    },
    enqueueWork: enqueue,
  }
}
