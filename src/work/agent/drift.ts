import { keyOf, type Api, type KubeObject, type ServedResource } from '../../kube/index.ts'
import { Informer, type Clock, type Logger } from '../../runtime/index.ts'
import { scopeOf, scopesFor, widthFor, type Scope, type Width } from './watch-plan.ts'

/** An object that somebody wants to hear about. */
export interface Interest {
  readonly resource: ServedResource
  /** `namespace/name`, or `name`. */
  readonly key: string
  /** What whoever wants it calls it. */
  readonly id: string
}

export interface DriftOptions {
  client: Api
  clock: Clock
  log: Logger
  /** An object was seen as it is now; undefined: it is not there. Called for changes, and for all that is there when a watch begins. */
  onSeen: (owner: string, id: string, object: KubeObject | undefined) => void
}

interface Watch {
  informer: Informer<KubeObject>
  stop: AbortController
}

interface KindWatch {
  resource: ServedResource
  /** By object, who wants it and what they call it. */
  users: Map<string, Map<string, string>>
  width: Width
  watches: Map<string, Watch>
  /** A change of its watches is under way. */
  scheduled: boolean
}

/** Works arrive together at the start: wait a little, so that a kind is not watched anew for each of them. */
const settleMs = 20

/**
 * Watches the objects that works have delivered: metadata alone, the kinds that are in use alone, and of those as little as
 * possible. Of objects that nobody asked about only the name and version are kept.
 */
export class DriftWatches {
  readonly #options: DriftOptions
  readonly #kinds = new Map<string, KindWatch>()
  readonly #wanted = new Map<string, Map<string, Map<string, string>>>()
  #stopped = false

  constructor(options: DriftOptions) {
    this.#options = options
  }

  /** How many watches are open. */
  get size(): number {
    return this.#kinds.values().reduce((sum, kind) => sum + kind.watches.size, 0)
  }

  /** Says what an owner wants to hear about from now on; nothing drops it. Called before objects are written: then no change is missed. */
  want(owner: string, interests: Iterable<Interest>): void {
    const next = new Map<string, Map<string, string>>()
    for (const { resource, key, id } of interests) {
      if (!resource.verbs.includes('watch') || !resource.verbs.includes('list')) continue
      const kind = kindKey(resource)
      let keys = next.get(kind)
      if (!keys) next.set(kind, (keys = new Map()))
      keys.set(key, id)
      const watch = this.#kind(kind, resource)
      let owners = watch.users.get(key)
      if (!owners) watch.users.set(key, (owners = new Map()))
      if (owners.get(owner) === id) continue
      owners.set(owner, id)
      this.#schedule(watch)
    }
    for (const [kind, keys] of this.#wanted.get(owner) ?? []) this.#drop(kind, owner, keys, next.get(kind))
    if (next.size) this.#wanted.set(owner, next)
    else this.#wanted.delete(owner)
  }

  /** The object as the watch has it; `watched` is false while nothing can be said. */
  seen(resource: ServedResource, key: string): { watched: boolean; object?: KubeObject | undefined } {
    const kind = this.#kinds.get(kindKey(resource))
    const watch = kind?.watches.get(scopeOf(key, kind.width))
    if (!watch?.informer.hasSynced) return { watched: false }
    return { watched: true, object: watch.informer.get(key) }
  }

  stop(): void {
    this.#stopped = true
    for (const kind of this.#kinds.values()) for (const watch of kind.watches.values()) watch.stop.abort()
    this.#kinds.clear()
    this.#wanted.clear()
  }

  #kind(key: string, resource: ServedResource): KindWatch {
    let kind = this.#kinds.get(key)
    if (!kind) {
      kind = { resource, users: new Map(), width: 0, watches: new Map(), scheduled: false }
      this.#kinds.set(key, kind)
    }
    return kind
  }

  #drop(kindKey: string, owner: string, keys: Map<string, string>, kept: Map<string, string> | undefined): void {
    const kind = this.#kinds.get(kindKey)
    if (!kind) return
    for (const key of keys.keys()) {
      if (kept?.has(key)) continue
      const owners = kind.users.get(key)
      owners?.delete(owner)
      if (owners?.size === 0) kind.users.delete(key)
      this.#schedule(kind)
    }
  }

  #schedule(kind: KindWatch): void {
    if (kind.scheduled || this.#stopped) return
    kind.scheduled = true
    this.#options.clock.after(settleMs, () => {
      kind.scheduled = false
      if (!this.#stopped) this.#rewatch(kind)
    })
  }

  #rewatch(kind: KindWatch): void {
    if (kind.users.size === 0) this.#kinds.delete(kindKey(kind.resource))
    kind.width = widthFor(kind.users.keys(), kind.width)
    const scopes = kind.users.size === 0 ? new Map<string, Scope>() : scopesFor(kind.users.keys(), kind.width)
    for (const [id, watch] of kind.watches) {
      if (scopes.has(id)) continue
      watch.stop.abort()
      kind.watches.delete(id)
    }
    for (const [id, scope] of scopes) if (!kind.watches.has(id)) kind.watches.set(id, this.#open(kind, scope, id))
  }

  #open(kind: KindWatch, { namespace, name }: Scope, id: string): Watch {
    const stop = new AbortController()
    const { client, clock, log } = this.#options
    const informer = new Informer<KubeObject>({
      client,
      resource: kind.resource,
      metadataOnly: true,
      clock,
      log,
      namespace,
      fieldSelector: name === undefined ? undefined : `metadata.name=${name}`,
      transform: (object) => (kind.users.has(keyOf(object)) ? { metadata: object.metadata } : nameAlone(object)),
    })
    const tell = (object: KubeObject): void => this.#tell(kind, keyOf(object), object)
    informer.on({ added: tell, updated: tell, deleted: (object) => this.#tell(kind, keyOf(object), undefined) })
    void informer.run(stop.signal)
    void informer.synced.then(() => {
      if (stop.signal.aborted) return
      // What was there has been told by now; what is missing was deleted while nobody watched.
      for (const key of kind.users.keys())
        if (scopeOf(key, kind.width) === id && !informer.get(key)) this.#tell(kind, key, undefined)
    })
    return { informer, stop }
  }

  #tell(kind: KindWatch, key: string, object: KubeObject | undefined): void {
    for (const [owner, id] of kind.users.get(key) ?? []) this.#options.onSeen(owner, id, object)
  }
}

const kindKey = ({ group, version, plural }: ServedResource): string => `${group}/${version}/${plural}`

const nameAlone = ({ metadata: { name, namespace, uid, resourceVersion } }: KubeObject): KubeObject => ({
  metadata: { name, namespace, uid, resourceVersion },
})
