import { createHash } from 'node:crypto'
import { Event, isNotFound, type Api, type KubeObject } from '../kube/index.ts'
import { systemClock, type Clock } from './clock.ts'
import { microTimestamp } from './conditions.ts'
import { silentLogger, type Logger } from './log.ts'

export interface EventOptions {
  client: Api
  /** Such as `lanyard.io/acceptance`. */
  controller: string
  /** Which replica. */
  instance: string
  clock?: Clock | undefined
  log?: Logger | undefined
}

export interface EventText {
  type: 'Normal' | 'Warning'
  /** One word in camel case: why. */
  reason: string
  /** What was being done. */
  action: string
  note: string
}

interface Series {
  namespace: string
  name: string
  count: number
  lastAt: number
}

/** Equal events within this time are counted in one object. */
const seriesMs = 6 * 60_000
/** An object gets this many different events at once, and then one every `refillMs`: a broken loop must not fill etcd. */
const burst = 25
const refillMs = 300_000
const mostSeries = 4096
const longestNote = 1024

/** Tells people what happened to an object. Events are news, not state: one that cannot be written is dropped. */
export class EventRecorder {
  readonly #options: EventOptions
  readonly #clock: Clock
  readonly #log: Logger
  readonly #series = new Map<string, Series>()
  readonly #budgets = new Map<string, { left: number; at: number }>()
  #writing: Promise<void> = Promise.resolve()

  constructor(options: EventOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#log = options.log ?? silentLogger
  }

  /** Returns at once; the event is written behind the caller's back. */
  record(regarding: KubeObject, text: EventText): void {
    this.#writing = this.#writing
      .then(() => this.#write(regarding, text))
      .catch((error: unknown) => this.#log.warn('an event was dropped', { reason: text.reason, error }))
  }

  /** Settles when all that was recorded has been written or dropped. */
  async flush(): Promise<void> {
    await this.#writing
  }

  async #write(regarding: KubeObject, text: EventText): Promise<void> {
    const now = this.#clock.now()
    const note = text.note.slice(0, longestNote)
    const id = JSON.stringify([
      regarding.metadata.uid,
      regarding.metadata.name,
      text.type,
      text.reason,
      text.action,
      note,
    ])
    const series = this.#series.get(id)
    if (series && now - series.lastAt < seriesMs) {
      series.count++
      series.lastAt = now
      if (await this.#countUp(series)) return
    }
    if (!this.#affords(regarding.metadata.uid ?? regarding.metadata.name ?? '', now)) return
    const namespace = regarding.metadata.namespace ?? 'default'
    const name = eventName(regarding, id, now)
    const { client, controller, instance } = this.#options
    await client.of(Event, namespace).create({
      metadata: { name, namespace },
      eventTime: microTimestamp(now),
      reportingController: controller,
      reportingInstance: instance.slice(0, 128),
      action: text.action,
      reason: text.reason,
      type: text.type,
      note,
      regarding: {
        apiVersion: regarding.apiVersion,
        kind: regarding.kind,
        namespace: regarding.metadata.namespace,
        name: regarding.metadata.name,
        uid: regarding.metadata.uid,
        resourceVersion: regarding.metadata.resourceVersion,
      },
    })
    if (this.#series.size >= mostSeries) this.#series.delete(this.#series.keys().next().value!)
    this.#series.set(id, { namespace, name, count: 1, lastAt: now })
  }

  /** False when the event is gone by now, and has to be written anew. */
  async #countUp(series: Series): Promise<boolean> {
    const lastObservedTime = microTimestamp(series.lastAt)
    try {
      await this.#options.client
        .of(Event, series.namespace)
        .patch(series.name, { merge: { series: { count: series.count, lastObservedTime } } })
      return true
    } catch (error) {
      if (isNotFound(error)) return false
      throw error
    }
  }

  #affords(object: string, now: number): boolean {
    const budget = this.#budgets.get(object) ?? { left: burst, at: now }
    const left = Math.min(burst, budget.left + (now - budget.at) / refillMs)
    if (this.#budgets.size >= mostSeries) this.#budgets.delete(this.#budgets.keys().next().value!)
    this.#budgets.set(object, { left: left < 1 ? left : left - 1, at: now })
    return left >= 1
  }
}

// Unique among replicas, and within the 253 characters that a name may have.
const eventName = (regarding: KubeObject, id: string, now: number): string => {
  const hash = createHash('sha256')
    .update(id)
    .update(String(now))
    .update(String(process.pid))
    .digest('hex')
    .slice(0, 16)
  return `${(regarding.metadata.name ?? 'object').slice(0, 230)}.${hash}`
}
