import { isAlreadyExists, isConflict, Lease, type Api } from '../kube/index.ts'
import { sleep, systemClock, type Clock } from './clock.ts'
import { microTimestamp } from './conditions.ts'
import { Informer } from './informer.ts'
import { silentLogger, type Logger } from './log.ts'
import type { Metrics } from './metrics.ts'

export interface LeaderOptions {
  client: Api
  namespace: string
  /** Of the Lease. */
  name: string
  /** Unique to this process. */
  identity: string
  /** Others wait this long after the last renewal that they saw. */
  leaseMs?: number | undefined
  /** The leader gives up when it could not renew for this long; shorter than the lease, so that it stops before another starts. */
  renewWithinMs?: number | undefined
  retryMs?: number | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
  log?: Logger | undefined
  metrics?: Metrics | undefined
}

/** The lead was lost though nobody asked us to stop. The process should end: another one leads now, or soon. */
export class LeadershipLost extends Error {
  override name = 'LeadershipLost'
}

/**
 * At most one of several replicas leads, by a Lease that it renews. Nobody's clock is compared with anybody else's: a
 * follower measures from when it saw the last renewal, the leader from before it sent its own.
 */
export class LeaderElection {
  readonly #options: LeaderOptions
  readonly #clock: Clock
  readonly #random: () => number
  readonly #log: Logger
  readonly #leaseMs: number
  readonly #renewWithinMs: number
  readonly #retryMs: number
  #renewedAt: number | undefined
  /** The record as it was last seen, and when it was first seen so. */
  #seen: { version: string; at: number } | undefined

  constructor(options: LeaderOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#random = options.random ?? Math.random
    this.#log = (options.log ?? silentLogger).with({ lease: `${options.namespace}/${options.name}` })
    this.#leaseMs = options.leaseMs ?? 15_000
    this.#renewWithinMs = options.renewWithinMs ?? (this.#leaseMs * 2) / 3
    this.#retryMs = options.retryMs ?? this.#leaseMs / 7.5
    options.metrics
      ?.gauge('leader_election_master_status', 'Whether this process leads')
      .read(() => (this.leads() ? 1 : 0), { name: options.name })
  }

  /** Asked by the clock, not remembered: a process that was paused knows at once that its time is over. */
  leads(): boolean {
    return this.#renewedAt !== undefined && this.#clock.now() < this.#renewedAt + this.#renewWithinMs
  }

  /** Waits for the lead, works while it lasts, and hands over at once when the work ends or the signal comes. */
  async run(signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    await this.#acquire(signal)
    if (signal.aborted) return
    this.#log.info('leading', { identity: this.#options.identity })

    const lost = new AbortController()
    const renewing = new AbortController()
    const renewals = this.#renew(renewing.signal).catch((error: unknown) => lost.abort(error))
    try {
      await work(AbortSignal.any([signal, lost.signal]))
    } finally {
      renewing.abort()
      await renewals
      if (!lost.signal.aborted) await this.#release()
      this.#renewedAt = undefined
    }
    if (lost.signal.aborted) throw lost.signal.reason
  }

  async #acquire(signal: AbortSignal): Promise<void> {
    const { client, namespace, name } = this.#options
    const following = new AbortController()
    const informer = new Informer({
      client,
      resource: Lease,
      namespace,
      fieldSelector: `metadata.name=${name}`,
      clock: this.#clock,
      log: this.#log,
    })
    const watch = informer.run(following.signal)
    try {
      for (let failed = false; !signal.aborted;) {
        // A little apart, so that candidates that saw the same release do not all ask at once for ever.
        const pauseMs = this.#random() * (failed ? this.#retryMs : 50)
        await sleep(this.#clock, pauseMs, signal).catch(() => {})
        if (!failed) await this.#untilFree(informer, signal)
        if (signal.aborted) return
        const result = await this.#try(signal).catch((error: unknown) => {
          if (!signal.aborted) this.#log.warn('could not ask for the lead', { error })
          return undefined
        })
        if (result === 'leading') return
        failed = result === undefined
      }
    } finally {
      following.abort()
      await watch
    }
  }

  /** Costs no request: the lease is watched, and asked for when it is released, deleted, or has not changed for its time. */
  #untilFree(informer: Informer<Lease>, signal: AbortSignal): Promise<void> {
    const { namespace, name } = this.#options
    return new Promise((resolve) => {
      let cancel = (): void => {}
      const finish = (): void => {
        cancel()
        off()
        signal.removeEventListener('abort', finish)
        resolve()
      }
      const look = (lease: Lease | undefined): void => {
        cancel()
        if (lease) this.#note(lease)
        const free = lease ? this.#expiry(lease) - this.#clock.now() : 0
        if (free > 0) cancel = this.#clock.after(free, finish)
        else queueMicrotask(finish)
      }
      const off = informer.on({ updated: look, added: look, deleted: () => look(undefined) })
      signal.addEventListener('abort', finish, { once: true })
      if (signal.aborted) finish()
      else
        informer.synced.then(
          () => informer.get(`${namespace}/${name}`) ?? look(undefined),
          () => {},
        )
    })
  }

  #note(lease: Lease): void {
    const version = lease.metadata.resourceVersion!
    if (version !== this.#seen?.version) this.#seen = { version, at: this.#clock.now() }
  }

  /** When the lease is free for others: 0 when nobody holds it. */
  #expiry(lease: Lease): number {
    const { holderIdentity, leaseDurationSeconds = 0 } = lease.spec
    if (!holderIdentity || holderIdentity === this.#options.identity) return 0
    return this.#seen!.at + Math.max(this.#leaseMs, leaseDurationSeconds * 1000)
  }

  /** One attempt to take or keep the lease. */
  async #try(signal: AbortSignal): Promise<'leading' | 'following'> {
    const { client, namespace, name, identity } = this.#options
    const leases = client.of(Lease, namespace)
    const timeoutMs = this.#renewWithinMs / 2
    const lease = await leases.find(name, { signal, timeoutMs })
    if (lease) this.#note(lease)
    if (lease && this.#clock.now() < this.#expiry(lease)) return 'following'

    // Before it is sent: the others may see it only that much later than we count from.
    const sentAt = this.#clock.now()
    const ours = lease?.spec.holderIdentity === identity
    const now = microTimestamp(sentAt)
    const transitions = lease?.spec.leaseTransitions ?? 0
    const next: Lease = {
      metadata: { ...lease?.metadata, name, namespace },
      spec: {
        holderIdentity: identity,
        leaseDurationSeconds: Math.ceil(this.#leaseMs / 1000),
        acquireTime: (ours && lease?.spec.acquireTime) || now,
        renewTime: now,
        leaseTransitions: ours || !lease ? transitions : transitions + 1,
      },
    }
    try {
      const call = { signal, timeoutMs }
      const written = lease ? await leases.update(next, call) : await leases.create(next, call)
      this.#note(written)
      this.#renewedAt = sentAt
      return 'leading'
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error)) return 'following' // somebody was quicker
      throw error
    }
  }

  /** Settles when stopped; rejects when the lead is lost. */
  async #renew(stop: AbortSignal): Promise<void> {
    const { identity } = this.#options
    for (;;) {
      await sleep(this.#clock, this.#retryMs, stop).catch(() => {})
      if (stop.aborted) return
      const deadline = new AbortController()
      const left = this.#renewedAt! + this.#renewWithinMs - this.#clock.now()
      const cancel = this.#clock.after(Math.max(0, left), () => deadline.abort())
      const forward = (): void => deadline.abort()
      stop.addEventListener('abort', forward, { once: true })
      try {
        const result = await this.#try(deadline.signal)
        if (stop.aborted) return
        if (result === 'following') throw new LeadershipLost(`another replica took the lead from ${identity}`)
      } catch (error) {
        if (stop.aborted) return
        if (error instanceof LeadershipLost) throw error
        if (!this.leads())
          throw new LeadershipLost(`${identity} could not renew its lease in ${this.#renewWithinMs / 1000} s`, {
            cause: error,
          })
        this.#log.warn('could not renew the lease; trying again', { error })
      } finally {
        cancel()
        stop.removeEventListener('abort', forward)
      }
    }
  }

  /** Gives the lease up, so that another does not wait for it to run out. */
  async #release(): Promise<void> {
    const { client, namespace, name, identity } = this.#options
    const leases = client.of(Lease, namespace)
    try {
      const lease = await leases.find(name, { timeoutMs: this.#retryMs })
      if (lease?.spec.holderIdentity !== identity) return
      const spec = { ...lease.spec, holderIdentity: '', renewTime: microTimestamp(this.#clock.now()) }
      await leases.update({ ...lease, spec }, { timeoutMs: this.#retryMs })
      this.#log.info('handed the lead over')
    } catch (error) {
      this.#log.warn('could not release the lease; it runs out by itself', { error })
    }
  }
}
