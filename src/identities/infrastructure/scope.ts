import { isDeepStrictEqual } from 'node:util'
import type { AWSCluster } from '../../api/index.ts'
import { failedFor, type AwsTags, type LoadBalancer } from '../../aws/index.ts'
import { keyOf } from '../../kube/index.ts'
import { waiting, type Freshest } from '../../runtime/index.ts'
import { clusterOf, isPaused } from '../paused.ts'
import type { Room } from '../room.ts'
import type { ClientOptions, Clients } from './clients.ts'
import type { Memory } from './memory.ts'
import { missingTags, ownerOf, type GroupRole } from './names.ts'
import { networkOf, type Network, type SubnetSpec } from './plan.ts'
import { takeSnapshot, type Snapshot } from './snapshot.ts'
import { changeCluster, type InfrastructureChange } from './writes.ts'

export interface InfrastructureSettings {
  /** How often what is ready is compared with AWS. Nothing is asked in between. */
  driftMs: number
  /** How often something that AWS is busy with is looked at. */
  pollMs: number
  /** How long after a start it takes until everything that was done before is sure to be visible. */
  settleMs: number
  /** The first wait after a failure; it doubles. */
  retryMs: number
  /** How often a paused cluster is looked at. */
  pausedMs: number
}

const tokenMs = 900_000

/** What all parts of the infrastructure get. */
export interface Infrastructure {
  room: Room
  settings: InfrastructureSettings
  memory: Memory
  /** Clusters as we wrote them: a cache that is behind is no news, and no reason to ask AWS again. */
  written: Freshest<AWSCluster>
  clientsFor: (options: ClientOptions) => Clients
  random: () => number
}

/** Something is not there yet: which condition says so, in which words. It keeps nothing waiting but what stands on it. */
export interface Pending {
  reason: string
  message: string
  /** AWS could not do it, which is an alarm; otherwise it is busy with it. */
  isFailure?: boolean
  /** When to look again; after the usual time if absent. */
  afterMs?: number | undefined
}

/** What steps have found or made, for those that follow. */
export interface Found {
  vpcId: string
  vpcCidr: string
  /** Made by us, and so removed by us. Otherwise it is only used. */
  managed: boolean
  subnets: SubnetSpec[]
  internetGatewayId?: string | undefined
  /** By the zone of the private subnets that use it; absent while it is being made. */
  natGateways: Map<string, string>
  /** When to look again at those that are absent. */
  natAfterMs?: number | undefined
  natAddresses: string[]
  groups: Record<GroupRole, string>
  loadBalancer?: LoadBalancer | undefined
  /** What is somebody else's and could not be tagged. */
  untagged: { id: string; why: string }[]
}

/** The cluster is paused: whoever paused it wants nothing to be touched. */
export class PausedMeanwhile extends Error {
  override name = 'PausedMeanwhile'
}

/** One pass over one cluster: who acts, where, on what. Steps read `seen` and write `found`. */
export class Scope {
  readonly infrastructure: Infrastructure
  readonly apiPort: number
  readonly signal: AbortSignal
  readonly ec2: Clients['ec2']
  readonly elb: Clients['elb']
  readonly key: string
  readonly owner: string
  seen!: Snapshot
  #lookedAt = 0
  readonly found: Found = {
    vpcId: '',
    vpcCidr: '',
    managed: false,
    subnets: [],
    natGateways: new Map(),
    natAddresses: [],
    groups: { 'apiserver-lb': '', lb: '', controlplane: '', node: '' },
    untagged: [],
  }
  #cluster: AWSCluster
  #begun: Promise<void> | undefined
  #overtaken = false

  constructor(
    infrastructure: Infrastructure,
    cluster: AWSCluster,
    options: Omit<ClientOptions, 'beforeChange'> & { apiPort: number },
  ) {
    this.infrastructure = infrastructure
    this.#cluster = cluster
    this.apiPort = options.apiPort
    this.signal = options.signal
    this.key = keyOf(cluster)
    this.owner = ownerOf(cluster)
    const { ec2, elb } = infrastructure.clientsFor({ ...options, beforeChange: () => this.#begin() })
    this.ec2 = ec2
    this.elb = elb
  }

  /** As it was last written. */
  get cluster(): AWSCluster {
    return this.#cluster
  }

  get network(): Network {
    return networkOf(this.#cluster.spec)
  }

  /** Whether anything was changed in this pass, or tried. */
  get hasBegun(): boolean {
    return this.#begun !== undefined
  }

  /** Whether somebody else has changed the spec, or deletes it, since the pass began: then it did not see to all of it. */
  get isOvertaken(): boolean {
    return this.#overtaken
  }

  /** Looks at what there is in AWS. */
  async look(): Promise<void> {
    const { memory, room } = this.infrastructure
    this.#lookedAt = room.clock.now()
    this.seen = await takeSnapshot(this, memory, this)
  }

  /** Whether what was seen is all that an earlier process has made. */
  get isSettled(): boolean {
    return this.infrastructure.memory.isSettled(this.key, this.#lookedAt)
  }

  /** Its status was written. */
  adopt(cluster: AWSCluster): void {
    if (cluster.metadata.generation !== this.#cluster.metadata.generation) this.#overtaken = true
    this.#took(cluster)
  }

  async change(change: InfrastructureChange): Promise<void> {
    const before = this.#cluster
    const after = await changeCluster(this.infrastructure.room, before, change, this.signal)
    // The API server counts each change of the spec; ours is one.
    const { network = before.spec?.network, controlPlaneEndpoint = before.spec?.controlPlaneEndpoint } = change
    const said = [before.spec?.network, before.spec?.controlPlaneEndpoint]
    const ours = isDeepStrictEqual([network, controlPlaneEndpoint], said) ? 0 : 1
    if (after.metadata.generation !== (before.metadata.generation ?? 0) + ours) this.#overtaken = true
    this.#took(after)
  }

  #took(cluster: AWSCluster): void {
    if (cluster !== this.#cluster) this.infrastructure.written.wrote(this.key, this.#cluster, cluster)
    this.#cluster = cluster
  }

  /**
   * Makes something. What AWS itself does not refuse a second time, by its name or its block, waits until everything that was made is
   * visible: a process that was killed between a call and its answer must not have a successor that makes the same again. Tokens, where
   * there are some, guard one process against its own lost answers; they change with time, and so do not guard the next one.
   */
  async make<K extends keyof Snapshot>(
    kind: K,
    create: () => Promise<Snapshot[K][number]>,
    { onlyOnce = false }: { onlyOnce?: boolean } = {},
  ): Promise<Snapshot[K][number]> {
    if (!onlyOnce && !this.isSettled)
      throw waiting('Settling', {
        afterMs: this.infrastructure.memory.unsettledMs(this.key),
        message: 'this process has just started; what was made before may show up',
      })
    const thing = await create()
    this.infrastructure.memory.made(this.key, kind, thing)
    ;(this.seen[kind] as Snapshot[K][number][]).push(thing)
    return thing
  }

  /** What AWS could not make is made anew after this time. */
  get replaceMs(): number {
    return 60 * this.infrastructure.settings.retryMs
  }

  /**
   * AWS keeps a token for a day, and answers it with what it made then, even if that is gone. Part of each token is a number that is
   * another one after a quarter of an hour, so that what a person deletes is made again.
   */
  get lately(): string {
    return String(Math.floor(this.infrastructure.room.clock.now() / tokenMs))
  }

  /** Tags that it should have and has not. */
  async keepTags(thing: { id: string; tags: AwsTags }, wanted: AwsTags): Promise<void> {
    const missing = missingTags(thing.tags, wanted)
    if (Object.keys(missing).length > 0) await this.ec2.createTags([thing.id], missing)
  }

  /** The same for what is somebody else's: that we may not, or that it has all the tags it can have, stops nothing and is told. */
  async tryTags(thing: { id: string; tags: AwsTags }, wanted: AwsTags): Promise<void> {
    try {
      await this.keepTags(thing, wanted)
    } catch (error) {
      if (!failedFor(error, 'AccessDenied', 'LimitExceeded')) throw error
      this.found.untagged.push({ id: thing.id, why: error.what })
    }
  }

  /**
   * Before the first change in AWS. `clusterctl move` pauses and then waits for who holds it; we hold it and then look whether it is
   * paused. So one of the two always sees the other, and two hubs never act on one cluster.
   */
  #begin(): Promise<void> {
    return (this.#begun ??= this.#claim())
  }

  async #claim(): Promise<void> {
    const isDeleting = this.#cluster.metadata.deletionTimestamp !== undefined
    await this.change({ holdMove: true, ...(isDeleting ? {} : { finalizer: true }) })
    const owner = await clusterOf(this.infrastructure.room, this.#cluster, this.signal)
    if (isPaused(this.#cluster, owner)) throw new PausedMeanwhile(`cluster ${this.key} was paused`)
    if (!isDeleting && this.#cluster.metadata.deletionTimestamp)
      throw waiting('Deleting', { afterMs: 0, message: `cluster ${this.key} is being deleted: nothing is made for it` })
  }
}
