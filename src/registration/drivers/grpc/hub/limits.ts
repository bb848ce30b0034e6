import { code, GrpcError } from '../../../../events/index.ts'
import type { Clock } from '../../../../runtime/index.ts'

/** What one client may ask for. An honest agent with a thousand works stays far below. */
export interface Limits {
  /** Publishes a second, and how many may come at once after a pause. */
  publishesPerSecond: number
  publishBurst: number
  /** Under way at the same time: each may hold a message in memory. */
  publishesUnderWay: number
  subscriptions: number
}

export const defaultLimits: Limits = {
  publishesPerSecond: 100,
  publishBurst: 500,
  publishesUnderWay: 16,
  subscriptions: 32,
}

interface Account {
  tokens: number
  at: number
  publishing: number
  subscribed: number
}

/** Counts what each client does. Whoever is over a limit is told so; nobody else notices. */
export class ClientLimits {
  readonly #limits: Limits
  readonly #clock: Clock
  readonly #accounts = new Map<string, Account>()

  constructor(limits: Partial<Limits>, clock: Clock) {
    this.#limits = { ...defaultLimits, ...limits }
    this.#clock = clock
  }

  get clients(): number {
    return this.#accounts.size
  }

  /** Throws when the client has had enough. The answer is to be called when the call is over. */
  enter(client: string, method: 'publish' | 'subscribe'): () => void {
    const account = this.#accountOf(client)
    const limits = this.#limits
    const field = method === 'publish' ? 'publishing' : 'subscribed'
    const most = method === 'publish' ? limits.publishesUnderWay : limits.subscriptions
    if (account[field] >= most)
      throw exhausted(
        `${client} has ${most} ${method === 'publish' ? 'publishes under way' : 'subscriptions'}, the most there may be`,
      )
    if (method === 'publish') {
      const now = this.#clock.now()
      account.tokens = Math.min(
        limits.publishBurst,
        account.tokens + ((now - account.at) / 1000) * limits.publishesPerSecond,
      )
      account.at = now
      if (account.tokens < 1)
        throw exhausted(`${client} publishes more than ${limits.publishesPerSecond} events a second: wait a moment`)
      account.tokens--
    }
    account[field]++
    let left = false
    return () => {
      if (left) return
      left = true
      account[field]--
    }
  }

  /** Forgets clients that have been quiet for so long that their account is as good as new. */
  sweep(): void {
    const fullMs = (this.#limits.publishBurst / this.#limits.publishesPerSecond) * 1000
    for (const [client, { publishing, subscribed, at }] of this.#accounts)
      if (publishing === 0 && subscribed === 0 && this.#clock.now() - at > fullMs) this.#accounts.delete(client)
  }

  #accountOf(client: string): Account {
    let account = this.#accounts.get(client)
    if (!account) {
      account = { tokens: this.#limits.publishBurst, at: this.#clock.now(), publishing: 0, subscribed: 0 }
      this.#accounts.set(client, account)
    }
    return account
  }
}

const exhausted = (message: string): GrpcError => new GrpcError(code.resourceExhausted, message)
