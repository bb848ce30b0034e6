import {
  decoded,
  effective,
  encoded,
  isAlreadyExists,
  isNotFound,
  Secret,
  type Client,
  type SecretChange,
  type SecretData,
} from '../../kube/index.ts'
import { describeError, Informer, type Clock, type Logger } from '../../runtime/index.ts'
import { patiently } from './patience.ts'

export interface HubSecretOptions {
  local: Client
  namespace: string
  name: string
  clock: Clock
  random: () => number
  log: Logger
}

/**
 * The Secret on the managed cluster that holds who we are and how we prove it. It is followed by a watch; what we write is
 * seen at once. Everything in it can be changed or deleted by others at any moment.
 */
export class HubSecret {
  readonly source: string
  readonly #options: HubSecretOptions
  readonly #informer: Informer<Secret>
  readonly #listeners = new Set<() => void>()
  #secret: Secret | undefined
  #data: SecretData = {}

  constructor(options: HubSecretOptions) {
    const { local, namespace, name, clock, log } = options
    this.#options = options
    this.source = `secret ${namespace}/${name}`
    const fieldSelector = `metadata.name=${name}`
    this.#informer = new Informer({ client: local, resource: Secret, namespace, fieldSelector, clock, log })
    this.#informer.on({
      added: (secret) => this.#see(secret),
      updated: (secret) => this.#see(secret),
      deleted: (secret) => secret.metadata.uid === this.#secret?.metadata.uid && this.#see(undefined),
    })
  }

  get synced(): Promise<void> {
    return this.#informer.synced
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#informer.run(signal)
  }

  /** What is in it; empty when there is none. The same object while nothing changed. */
  get data(): SecretData {
    return this.#data
  }

  get exists(): boolean {
    return this.#secret !== undefined
  }

  /** Told after each change; the answer takes the listener out. */
  on(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Sets and removes keys, and leaves all others alone. Goes on until it is done: a credential must not be lost on its way here. */
  async write(change: SecretChange, signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#options
    await patiently(() => this.#write(change, signal), {
      clock,
      random,
      signal,
      failed: (error) => log.warn(`${this.source} could not be written; trying again: ${describeError(error)}`),
    })
  }

  async #write(change: SecretChange, signal: AbortSignal): Promise<void> {
    const { local, namespace, name } = this.#options
    const needed = effective(change, this.#data)
    if (this.#secret && Object.keys(needed).length === 0) return
    const secrets = local.of(Secret, namespace)
    const data = encoded(this.#secret ? needed : change)
    try {
      if (this.#secret) return this.#see(await secrets.patch(name, { merge: { data } }, { signal }))
      const kept = Object.fromEntries(Object.entries(data).filter((entry): entry is [string, string] => !!entry[1]))
      this.#see(await secrets.create({ metadata: { name, namespace }, type: 'Opaque', data: kept }, { signal }))
    } catch (error) {
      // The watch is behind: what we took for there is gone, or the reverse.
      if (isNotFound(error)) this.#see(undefined)
      else if (isAlreadyExists(error)) this.#see(await secrets.get(name, { signal }))
      throw error
    }
  }

  #see(secret: Secret | undefined): void {
    if (secret && this.#secret && isOlder(secret, this.#secret)) return
    const unchanged = secret?.metadata.resourceVersion === this.#secret?.metadata.resourceVersion
    this.#secret = secret
    if (unchanged) return
    this.#data = decoded(secret) ?? {}
    for (const listener of this.#listeners) listener()
  }
}

// What we wrote is known before the watch tells of what was there before. Since 1.35 versions may be compared as numbers.
const isOlder = (a: Secret, b: Secret): boolean =>
  a.metadata.uid === b.metadata.uid && Number(a.metadata.resourceVersion) < Number(b.metadata.resourceVersion)
