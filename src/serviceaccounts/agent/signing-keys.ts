import { ApiError, type Client } from '../../kube/index.ts'
import { describeError, sleep, type Clock, type Logger } from '../../runtime/index.ts'
import { digestOf } from '../contract.ts'

/** How often the cluster is asked for its keys although nothing has happened. */
const everyMs = 3_600_000
/** How often the watch is looked at: an API server reads its keys when it starts, and a start cuts the watch. Asks nobody. */
const glanceMs = 60_000

export interface SigningKeysOptions {
  local: Pick<Client, 'text'>
  clock: Clock
  log: Logger
  /** For how long, since then, the cluster could not be seen. */
  missedMs: (since: number) => number
}

/**
 * The keys by which the managed cluster knows its own tokens. A cluster that replaces them refuses every token signed before,
 * without a word; the agent cannot try them, since it keeps none. It can read the public keys, which every API server publishes
 * to its service accounts (KEP-1393), and remembers of each token which key had signed it.
 */
export class SigningKeys {
  readonly #options: SigningKeysOptions
  #published: ReadonlySet<string> | undefined
  #looks = 0
  #lookedAt = -Infinity
  #dueAt = -Infinity
  /** Keys that the cluster signed with and did not publish, with the look before: see `received`. */
  readonly #excused = new Map<string, number>()

  constructor(options: SigningKeysOptions) {
    this.#options = options
  }

  /** Whether the cluster has given up the key of a token; never while that is not certain. */
  isGone(key: string | undefined): boolean {
    if (!key || !this.#published || this.#published.has(key)) return false
    return (this.#excused.get(key) ?? -1) < this.#looks
  }

  /**
   * What to remember of a token that the cluster has just issued; empty where it names no key. Its key may not be among the
   * published yet: we looked before the change, or another of several API servers answered. The next look decides. Where the
   * cluster still signs with it then, it is one that does not publish all its keys, and nothing can be said of that one.
   */
  received(token: string): string {
    const id = keyIdIn(token)
    if (id === undefined) return ''
    const key = digestOf(id)
    if (!this.#published?.has(key)) {
      const since = this.#excused.get(key) ?? this.#looks
      this.#excused.set(key, since < this.#looks ? Infinity : since)
    }
    return key
  }

  /** Reads the keys. Where that is not possible, what was known before stays. */
  async look(signal: AbortSignal): Promise<void> {
    const { local, clock, log } = this.#options
    const now = clock.now()
    try {
      const text = await local.text({
        method: 'GET',
        path: '/openid/v1/jwks',
        accept: 'application/jwk-set+json',
        signal,
      })
      this.#published = publishedIn(text)
      this.#looks++
      this.#lookedAt = now
      this.#dueAt = now + everyMs
    } catch (error) {
      if (signal.aborted) return
      // Not served, or not to us: there will be nothing to see in a minute either.
      const refused = error instanceof ApiError && error.status < 500
      this.#dueAt = now + (refused ? everyMs : glanceMs)
      if (refused) this.#lookedAt = now
      log.info(
        'the public keys of the cluster cannot be read: should it replace them, tokens are not renewed for that',
        {
          error: describeError(error),
        },
      )
    }
  }

  /** Looks again every hour, and when the API server was away; tells each time it has looked. */
  async follow(looked: () => void, signal: AbortSignal): Promise<void> {
    const { clock, missedMs } = this.#options
    while (!signal.aborted) {
      await sleep(clock, glanceMs, signal).catch(() => undefined)
      if (signal.aborted) return
      if (clock.now() < this.#dueAt && missedMs(this.#lookedAt) === 0) continue
      await this.look(signal)
      looked()
    }
  }
}

/** Which key signed a token, in the token's own words. */
const keyIdIn = (token: string): string | undefined => {
  try {
    const { kid } = JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()) as { kid?: unknown }
    return typeof kid === 'string' && kid ? kid : undefined
  } catch {
    return undefined
  }
}

/** What a key set names; one that names no key says nothing. */
const publishedIn = (text: string): ReadonlySet<string> | undefined => {
  const { keys } = JSON.parse(text) as { keys?: { kid?: unknown }[] }
  const ids = (Array.isArray(keys) ? keys : []).flatMap(({ kid }) => (typeof kid === 'string' && kid ? [kid] : []))
  return ids.length > 0 ? new Set(ids.map((id) => digestOf(id))) : undefined
}
