/** Who came after this many others is forgotten: by then nothing of it is on its way any more. */
const remembered = 50_000

/** Where a report comes from, and its place among those of the same sender. */
export interface Sent {
  /** Text of digits; without one, everybody gets a turn. */
  number: string
  /** The connection that it came over. */
  session: object
}

/** The version of the thing that a turn has made or seen; undefined when it failed, and may have written all the same. */
export type Version = bigint | undefined

interface Last {
  number: bigint
  /** The connection that it came over, and the first one since the sender's clock was set back. */
  connection: number
  since: number
  turn: Promise<Version>
}

/**
 * Reports about one thing, one after the other. Those that were sent before what is known already are dropped: calls may overtake
 * each other. Agents number what they send, by their clock, and within one process only upwards. So a smaller number over a newer
 * connection is from a process that was started after the clock was set back: it counts, and older connections count no more.
 */
export class Turns {
  readonly #last = new Map<string, Last>()
  readonly #connections = new WeakMap<object, number>()
  #heard = 0

  /** `work` is told the version that the turn before it has left, and tells its own: a cache may not know of it yet. */
  async run(key: string, { number, session }: Sent, work: (left: Version) => Promise<bigint>): Promise<void> {
    const before = this.#last.get(key) ?? { number: 0n, connection: 0, since: 0, turn: Promise.resolve(0n) }
    const mine = /^\d{1,20}$/.test(number) ? BigInt(number) : before.number
    const connection = this.#orderOf(session)
    const isBack = mine < before.number
    if (connection < before.since || (isBack && connection <= before.connection)) return
    const turn = before.turn.then(work)
    this.#last.delete(key)
    this.#last.set(key, {
      number: mine,
      connection,
      since: isBack ? connection : before.since,
      turn: turn.catch(() => undefined),
    })
    if (this.#last.size > remembered) this.#last.delete(this.#last.keys().next().value!)
    await turn
  }

  /** Connections in the order in which they were first heard. */
  #orderOf(session: object): number {
    const known = this.#connections.get(session)
    if (known !== undefined) return known
    this.#connections.set(session, ++this.#heard)
    return this.#heard
  }
}
