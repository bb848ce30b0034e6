import type { Api, KubeObject, Resource } from '../kube/index.ts'
import { Informer, type InformerOptions } from './informer.ts'
import type { Selection } from './reflector.ts'

type Shared = Omit<InformerOptions<KubeObject>, 'client' | 'resource' | 'indexes' | 'transform' | keyof Selection>

/** What to follow and how to find it. */
export type SharedInformerOptions<T extends KubeObject> = Selection & Pick<InformerOptions<T>, 'indexes' | 'transform'>

/** The informers of one process: whoever asks for the same kind and selection gets the same one. */
export class Informers {
  readonly #client: Api
  readonly #shared: Shared
  readonly #informers = new Map<string, Informer<KubeObject>>()

  constructor(client: Api, shared: Shared = {}) {
    this.#client = client
    this.#shared = shared
  }

  /** Indexes are added to the shared informer; a transform belongs to whoever asks first, and must be the same for all. */
  of<T extends KubeObject>(resource: Resource<T>, options: SharedInformerOptions<T> = {}): Informer<T> {
    const { indexes, namespace, labelSelector, fieldSelector, metadataOnly } = options
    const { group, version, plural } = resource
    const id = JSON.stringify([group, version, plural, namespace, labelSelector, fieldSelector, metadataOnly])
    const known = this.#informers.get(id) as Informer<T> | undefined
    if (known) {
      for (const [name, by] of Object.entries(indexes ?? {})) known.addIndex(name, by)
      return known
    }
    const informer = new Informer({ ...this.#shared, client: this.#client, resource, ...options })
    this.#informers.set(id, informer as unknown as Informer<KubeObject>)
    return informer
  }

  /** Follows them all until the signal ends it. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#informers.values()].map((informer) => informer.run(signal)))
  }

  /** Settles when all have their first list. */
  async synced(): Promise<void> {
    await Promise.all([...this.#informers.values()].map((informer) => informer.synced))
  }

  /** The kinds that are still waiting for their first list. */
  get unsynced(): string[] {
    return [...this.#informers.values()].filter((i) => !i.hasSynced).map((i) => i.resource.plural)
  }

  /** Why watches count as dead; empty when all live. */
  unhealthy(): string[] {
    return [...this.#informers.values()].map((i) => i.unhealthy()).filter((why) => why !== undefined)
  }
}
