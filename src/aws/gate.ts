import type { Clock } from './clock.ts'
import { AwsError, failedFor } from './errors.ts'

export interface GateOptions {
  clock: Clock
  random: () => number
  /** Calls under way at the same time. */
  width: number
}

const firstPauseMs = 1000
const longestPauseMs = 60_000

/**
 * The way to one account in one region. When AWS says "slow down", or nothing, it closes for everybody who goes there; after a
 * while one call is let through to look, and when that succeeds the others follow. Other accounts have gates of their own.
 */
export class Gate {
  readonly #options: GateOptions
  readonly #line: (() => void)[] = []
  #inside = 0
  #failures = 0
  #closedUntil = 0
  #closedBy: AwsError | undefined

  constructor(options: GateOptions) {
    this.#options = options
  }

  /** Nobody inside, nobody waiting, nothing worth remembering. */
  get idle(): boolean {
    const past = this.#options.clock.now() > this.#closedUntil + 10 * longestPauseMs
    return this.#inside === 0 && this.#line.length === 0 && (this.#failures === 0 || past)
  }

  /** Makes the call when it may be made; rejects at once while the gate is closed. */
  async run<T>(call: () => Promise<T>): Promise<T> {
    this.#refuseWhileClosed()
    while (this.#room <= 0) {
      await new Promise<void>((enter) => this.#line.push(enter))
      this.#refuseWhileClosed() // what came before us may have found out
    }
    this.#inside++
    try {
      const answer = await call()
      this.#failures = 0
      return answer
    } catch (error) {
      if (isTrouble(error)) this.#close(error)
      else if (error instanceof AwsError) this.#failures = 0 // AWS is there, and said no
      throw error
    } finally {
      this.#inside--
      this.#wake()
    }
  }

  #close(error: AwsError): void {
    const { clock, random } = this.#options
    // Several that were under way together are one piece of news.
    if (clock.now() < this.#closedUntil) return
    this.#failures++
    const pause = Math.min(firstPauseMs * 2 ** (this.#failures - 1), longestPauseMs)
    this.#closedUntil = clock.now() + Math.max(pause * (0.5 + random() / 2), error.retryAfterMs ?? 0)
    this.#closedBy = error
  }

  #refuseWhileClosed(): void {
    const afterMs = this.#closedUntil - this.#options.clock.now()
    if (afterMs > 0) {
      for (const enter of this.#line.splice(0)) enter() // the others in line hear it too
      throw this.#closedBy!.with({ policy: { kind: 'wait', afterMs }, retryAfterMs: afterMs })
    }
  }

  /** After a failure only one may look whether it is over. */
  get #room(): number {
    return (this.#failures > 0 ? 1 : this.#options.width) - this.#inside
  }

  #wake(): void {
    for (const enter of this.#line.splice(0, Math.max(this.#room, 0))) enter()
  }
}

/** Not about the one who asked: everybody who goes this way meets it. */
const isTrouble = (error: unknown): error is AwsError =>
  failedFor(error, 'Throttled', 'Unavailable', 'Unreachable', 'TimedOut')
