import { finalizer, type AWSCluster } from '../../api/index.ts'
import { keyOf } from '../../kube/index.ts'
import { hasFinalizer, type Clock } from '../../runtime/index.ts'

/** How long something that was made may stay invisible to those who list. EC2 promises nothing; minutes were seen. */
const invisibleMs = 120_000

interface Known {
  /** When this process first looked at the cluster. */
  since: number
  /** Nobody had acted for it until then. */
  untouched: boolean
  quiet: { print: string; until: number } | undefined
  /** In a row. */
  failures: number
  made: { kind: string; id: string; thing: unknown; at: number }[]
}

/** What this process remembers of clusters, so that it asks AWS seldom and makes nothing twice. Losing it costs time and nothing else. */
export class Memory {
  readonly #clock: Clock
  readonly #settleMs: number
  readonly #known = new Map<string, Known>()

  constructor({ clock, settleMs }: { clock: Clock; settleMs: number }) {
    this.#clock = clock
    this.#settleMs = settleMs
  }

  forget(key: string): void {
    this.#known.delete(key)
  }

  /** Looks at a cluster, perhaps for the first time. */
  look(cluster: AWSCluster): void {
    const key = keyOf(cluster)
    if (this.#known.has(key)) return
    const untouched = !hasFinalizer(cluster, finalizer.awsCluster)
    this.#known.set(key, { since: this.#clock.now(), untouched, quiet: undefined, failures: 0, made: [] })
  }

  /**
   * How long it takes until everything that an earlier process did is sure to be visible. Whatever AWS would make a second time (a VPC,
   * an address) is made only then: it might be there already.
   */
  unsettledMs(key: string): number {
    const known = this.#known.get(key)
    if (!known || known.untouched) return 0
    return Math.max(known.since + this.#settleMs - this.#clock.now(), 0)
  }

  /** Whether a list that was asked for at this time shows all that an earlier process did. */
  isSettled(key: string, at: number): boolean {
    const known = this.#known.get(key)
    return !known || known.untouched || at >= known.since + this.#settleMs
  }

  /** Something was made: it counts, although lists may not show it yet. */
  made(key: string, kind: string, thing: { id: string }): void {
    this.#known.get(key)?.made.push({ kind, id: thing.id, thing, at: this.#clock.now() })
  }

  unmade(key: string, id: string): void {
    const known = this.#known.get(key)
    if (known) known.made = known.made.filter((one) => one.id !== id)
  }

  /** What lists show, and what they will show. */
  with<T extends { id: string }>(key: string, kind: string, listed: readonly T[]): T[] {
    const ids = new Set(listed.map(({ id }) => id))
    const unlisted = this.#recent(key).filter((one) => one.kind === kind && !ids.has(one.id))
    return [...listed, ...unlisted.map(({ thing }) => thing as T)]
  }

  /** Whether it was made so lately that AWS may not know it everywhere. */
  hasMade(key: string, id: string): boolean {
    return this.#recent(key).some((one) => one.id === id)
  }

  /** Whether a NotFound may only mean "not yet". */
  madeSomething(key: string): boolean {
    return this.#recent(key).length > 0
  }

  /** Nothing is to be done before this time, unless the cluster looks different by then. */
  quiet(key: string, print: string, forMs: number): void {
    const known = this.#known.get(key)
    if (!known) return
    known.failures = 0
    known.quiet = { print, until: this.#clock.now() + forMs }
  }

  /** The same after a failure. Our own writes are news too, and must not make it try again sooner than this. */
  failed(key: string, print: string, forMs: (failures: number) => number): number {
    const known = this.#known.get(key)
    if (!known) return 0
    const ms = forMs(known.failures++)
    known.quiet = { print, until: this.#clock.now() + ms }
    return ms
  }

  /** How long there is nothing to do. */
  quietMs(key: string, print: string): number {
    const quiet = this.#known.get(key)?.quiet
    return quiet?.print === print ? Math.max(quiet.until - this.#clock.now(), 0) : 0
  }

  #recent(key: string): Known['made'] {
    const known = this.#known.get(key)
    if (!known) return []
    known.made = known.made.filter(({ at }) => at + invisibleMs > this.#clock.now())
    return known.made
  }
}
