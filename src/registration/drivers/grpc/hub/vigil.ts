import { label, ManagedCluster, type ManagedCluster as Cluster } from '../../../../api/index.ts'
import { code, encodeEvent, framed, GrpcError, heartbeat, prefixLength } from '../../../../events/index.ts'
import { ClusterRole, ClusterRoleBinding, Role, RoleBinding, type KubeObject } from '../../../../kube/index.ts'
import type { Clock, Informer, Logger, Manager } from '../../../../runtime/index.ts'
import { forbidden, type Authorization } from './authorization.ts'
import type { Broker, Subscriber } from './broker.ts'
import { watchWish } from './wishes.ts'

export interface VigilOptions {
  manager: Manager
  broker: Broker
  access: Authorization
  clock: Clock
  log: Logger
  /** How often each subscriber gets a sign of life; 10 s. */
  heartbeatMs?: number | undefined
  /** How long a subscriber may take nothing of what waits for it; 2 minutes. */
  stalledMs?: number | undefined
}

/** In how many groups subscribers are visited, one after the other, so that nothing comes in waves. */
const groups = 10
/** Besides what the caches show: somebody may have changed RBAC that carries no label of ours. */
const lookAgainMs = 3_600_000
/** The API server's authorizer learns of a change about when we do, and not before. */
const checksAfterMs = [250, 3000]

interface Recheck {
  /** Something has changed since the first look. */
  again: boolean
  cancel: () => void
}

/** Watches over subscriptions: signs of life, readers that are stuck, credentials that end, rights that are taken away. */
export class Vigil {
  readonly #options: VigilOptions
  readonly #rounds: Map<Subscriber, number>[] = Array.from({ length: groups }, () => new Map())
  readonly #rechecks = new Map<string, Recheck>()
  #next = 0

  constructor(options: VigilOptions) {
    this.#options = options
    this.#follow()
  }

  add(subscriber: Subscriber): void {
    const round = this.#rounds[this.#next++ % groups]!
    round.set(subscriber, this.#options.clock.now())
    subscriber.outbox.onClose(() => round.delete(subscriber))
  }

  /** Until the signal. */
  run(signal: AbortSignal): void {
    const { clock, heartbeatMs = 10_000 } = this.#options
    let turn = 0
    const tick = (): void => {
      if (signal.aborted) return
      this.#visit(this.#rounds[turn++ % groups]!)
      clock.after(heartbeatMs / groups, tick)
    }
    clock.after(heartbeatMs / groups, tick)
    signal.addEventListener('abort', () => this.#rechecks.forEach(({ cancel }) => cancel()), { once: true })
  }

  #visit(round: Map<Subscriber, number>): void {
    if (round.size === 0) return
    const { clock, stalledMs = 120_000 } = this.#options
    const now = clock.now()
    const beat = framed(encodeEvent(heartbeat(), { reserve: prefixLength }))
    for (const [subscriber, checkedAt] of round) {
      const { outbox, who } = subscriber
      if (now >= who.expiresAt)
        outbox.end(
          new GrpcError(
            code.unauthenticated,
            'the credential of this subscription has ended: connect again with the present one',
          ),
        )
      else if (outbox.stalledMs(now) > stalledMs)
        outbox.end(
          new GrpcError(
            code.resourceExhausted,
            `nothing was read for ${Math.round(stalledMs / 1000)} s: connect again`,
          ),
        )
      else outbox.offer(beat)
      if (now - checkedAt > lookAgainMs) {
        round.set(subscriber, now)
        void this.#check([subscriber])
      }
    }
  }

  /** A cluster that was denied loses its subscriptions as soon as its rights are gone. */
  #follow(): void {
    const { manager } = this.#options
    const of = { labelSelector: `${label.clusterName},!${label.addOnName}` }
    const token = { labelSelector: `${label.tokenInfrastructure}=true` }
    const labelled = ({ metadata }: KubeObject): string => metadata.labels?.[label.clusterName] ?? ''
    const around = ({ metadata }: KubeObject): string => metadata.namespace ?? ''
    this.#on(manager.informer(ClusterRole, of), labelled)
    this.#on(manager.informer(ClusterRoleBinding, of), labelled)
    this.#on(manager.informer(RoleBinding, of), labelled)
    this.#on(manager.informer(Role, token), around)
    this.#on(manager.informer(RoleBinding, token), around)
    const accepted = ({ spec, metadata }: Cluster): string => `${spec.hubAcceptsClient} ${metadata.deletionTimestamp}`
    manager.informer(ManagedCluster).on({
      updated: (cluster, old) => accepted(cluster) === accepted(old) || this.#changed(cluster.metadata.name!),
      deleted: ({ metadata }) => this.#changed(metadata.name!),
    })
  }

  #on<T extends KubeObject>(informer: Informer<T>, clusterOf: (object: T) => string): void {
    const changed = (object: T): void => this.#changed(clusterOf(object))
    informer.on({ added: changed, updated: changed, deleted: changed })
  }

  /** Looks once soon and once later. What changes in between is looked at after that. */
  #changed(cluster: string): void {
    const { access, broker, clock } = this.#options
    access.forget(cluster)
    const pending = this.#rechecks.get(cluster)
    if (pending) pending.again = true
    if (pending || broker.listening(cluster).length === 0) return
    const [soon, later] = checksAfterMs as [number, number]
    const check = (): void => {
      access.forget(cluster)
      void this.#check(broker.listening(cluster))
    }
    const recheck: Recheck = { again: false, cancel: () => {} }
    this.#rechecks.set(cluster, recheck)
    recheck.cancel = clock.after(soon, () => {
      check()
      recheck.again = false
      recheck.cancel = clock.after(later, () => {
        this.#rechecks.delete(cluster)
        check()
        if (recheck.again) this.#changed(cluster)
      })
    })
  }

  async #check(subscribers: readonly Subscriber[]): Promise<void> {
    const { access, log } = this.#options
    for (const { outbox, who, cluster, dataType } of subscribers) {
      const wish = watchWish(dataType, cluster)!
      try {
        if (outbox.closed || (await access.allows(who, wish))) continue
        outbox.end(forbidden(who, wish))
        log.info('a subscription has ended: its rights were taken away', { user: who.username, cluster, dataType })
      } catch (error) {
        log.warn('whether a subscription is still allowed could not be asked', { user: who.username, cluster, error })
      }
    }
  }
}
