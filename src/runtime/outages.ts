/** More than this many are not remembered: the oldest say least about now. */
const most = 64

/** When nothing could be seen of the world. Whoever measures somebody else's silence has to take off their own deafness. */
export class Outages {
  readonly #list: { from: number; to: number }[] = []
  #openSince: number | undefined

  /** The connection is lost; saying it again changes nothing. */
  begin(at: number): void {
    this.#openSince ??= at
  }

  end(at: number): void {
    if (this.#openSince === undefined) return
    this.#list.push({ from: this.#openSince, to: at })
    if (this.#list.length > most) this.#list.shift()
    this.#openSince = undefined
  }

  /** How much of the time from `since` until `now` was lost; what goes on is counted too. */
  missedMs(since: number, now: number): number {
    let missed = this.#openSince === undefined ? 0 : Math.max(0, now - Math.max(this.#openSince, since))
    for (const { from, to } of this.#list) missed += Math.max(0, Math.min(to, now) - Math.max(from, since))
    return missed
  }
}
