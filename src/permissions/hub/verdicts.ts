import type { Requester } from '../../kube/index.ts'
import type { Clock } from '../../runtime/index.ts'

/** How long a yes is believed: admission has just asked what the controller asks next. A no is never kept, so that a new right counts at once. */
const believedMs = 10_000
const mostKept = 5000

/** The rights that were just found to be there. */
export class Verdicts {
  readonly #clock: Clock
  readonly #yes = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** What somebody lacks to give what has this fingerprint; asks unless they were found to lack nothing a moment ago. */
  async lacks(
    of: { who: Requester; target: object; print: string },
    ask: () => Promise<string[]>,
  ): Promise<readonly string[]> {
    const key = JSON.stringify(of)
    const until = this.#yes.get(key)
    if (until !== undefined && until > this.#clock.now()) return []
    const lacks = await ask()
    this.#yes.delete(key)
    if (lacks.length === 0) {
      // The oldest come first in a Map.
      if (this.#yes.size >= mostKept) this.#yes.delete(this.#yes.keys().next().value!)
      this.#yes.set(key, this.#clock.now() + believedMs)
    }
    return lacks
  }
}
