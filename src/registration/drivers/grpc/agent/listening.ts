import type { CloudEvent, Subscription } from '../../../../events/index.ts'
import type { CallOptions, Credential } from '../../../../kube/index.ts'
import { unlessAborted } from '../../../agent/scope.ts'
import type { Link } from './link.ts'

export interface Listener {
  /** Between the confirmation of a subscription and its use. */
  opened?(signal: AbortSignal): Promise<void>
  heard(event: CloudEvent): void
  /** It was cut: what happens from now on is not heard. */
  lost(error: unknown): void
}

/**
 * One subscription: opened when it is needed first, and again when it is needed after it was cut. It never comes back by itself:
 * whoever needs it tries again, and each has a patience of its own.
 */
export class Listening {
  readonly #link: Link
  readonly #dataType: string
  readonly #listener: Listener
  readonly #ending = new AbortController()
  #current: { subscription: Subscription; credential: Credential } | undefined
  #opening: Promise<void> | undefined

  constructor(link: Link, dataType: string, listener: Listener) {
    this.#link = link
    this.#dataType = dataType
    this.#listener = listener
  }

  /** Resolves when it is there; true when it had to be opened for that. */
  async live({ signal }: CallOptions = {}): Promise<boolean> {
    if (this.#current && !this.#opening) return false
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined))
    this.#opening.catch(() => {}) // whoever waits for it may have gone
    await (signal ? unlessAborted(this.#opening, signal) : this.#opening)
    return true
  }

  /** A subscription goes on with the credential that it began with; with a new one a new one is due. */
  async renewIfDue(): Promise<void> {
    const current = this.#current
    if (!current || this.#opening) return
    if ((await this.#link.connection.credentials()) !== current.credential) this.#end(current, new Renewed())
  }

  close(): void {
    this.#ending.abort(new Error('the connection to the hub was closed'))
    this.#current?.subscription.close()
  }

  async #open(): Promise<void> {
    const { signal } = this.#ending
    signal.throwIfAborted()
    const credential = await this.#link.connection.credentials({ signal })
    const subscription = await this.#link.subscribe(this.#dataType, { signal })
    const current = { subscription, credential }
    this.#current = current
    void this.#follow(current)
    try {
      await this.#listener.opened?.(signal)
      if (this.#current !== current)
        throw this.#link.refusal(503, 'the subscription was cut as soon as it began', this.#dataType)
    } catch (error) {
      this.#end(current, error)
      throw error
    }
  }

  async #follow(current: { subscription: Subscription; credential: Credential }): Promise<void> {
    try {
      for await (const event of current.subscription) {
        if (this.#current !== current) return
        this.#listener.heard(event)
      }
    } catch (error) {
      this.#end(current, this.#link.explained(error, this.#dataType))
    }
  }

  #end(current: { subscription: Subscription; credential: Credential }, error: unknown): void {
    if (this.#current !== current) return
    this.#current = undefined
    current.subscription.close()
    if (!(error instanceof Renewed)) this.#link.lost()
    this.#listener.lost(error)
  }
}

class Renewed extends Error {
  override message = 'the credential was renewed'
}
