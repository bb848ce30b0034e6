import { keyOf, Secret, type Api } from '../kube/index.ts'
import { Informer, type Clock, type Logger } from '../runtime/index.ts'

export interface FollowedSecretsOptions {
  client: Api
  clock?: Clock | undefined
  log?: Logger | undefined
  /** The namespaces that are worth following now. */
  wanted: () => ReadonlySet<string>
  /** A Secret came, changed or went. */
  changed: (secret: string) => void
}

/**
 * Follows the Secrets of those namespaces that static identities refer to, by names and versions alone: no value is ever in this
 * cache. On a hub with thousands of Secrets most are in other namespaces.
 */
export class FollowedSecrets {
  readonly #options: FollowedSecretsOptions
  readonly #followed = new Map<string, { stop: () => void; running: Promise<void> }>()
  #signal: AbortSignal | undefined

  constructor(options: FollowedSecretsOptions) {
    this.#options = options
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal
    this.refresh()
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      else signal.addEventListener('abort', () => resolve(), { once: true })
    })
    await Promise.all([...this.#followed.values()].map(({ running }) => running))
  }

  /** Looks which namespaces are wanted; before `run` nothing is followed. */
  refresh(): void {
    if (!this.#signal || this.#signal.aborted) return
    const wanted = this.#options.wanted()
    for (const namespace of wanted) if (!this.#followed.has(namespace)) this.#follow(namespace, this.#signal)
    for (const [namespace, { stop }] of this.#followed)
      if (!wanted.has(namespace)) {
        stop()
        this.#followed.delete(namespace)
      }
  }

  #follow(namespace: string, signal: AbortSignal): void {
    const { client, clock, log, changed } = this.#options
    const informer = new Informer({ client, resource: Secret, namespace, metadataOnly: true, clock, log })
    informer.on({
      // Those of the first list as well: between the first use of a Secret and this one it may have changed.
      added: (secret) => changed(keyOf(secret)),
      updated: (secret) => changed(keyOf(secret)),
      deleted: (secret) => changed(keyOf(secret)),
    })
    const end = new AbortController()
    const running = informer.run(AbortSignal.any([signal, end.signal]))
    this.#followed.set(namespace, { stop: () => end.abort(), running })
  }
}
