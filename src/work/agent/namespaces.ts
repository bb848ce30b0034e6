import { matchesSelector, Namespace, type Api, type KubeObject, type LabelSelector } from '../../kube/index.ts'
import { equal, Informer, sleep, type Clock, type Logger } from '../../runtime/index.ts'

export interface NamespacesOptions {
  client: Api
  clock: Clock
  log: Logger
  /** Called with the works that choose among namespaces, when namespaces came, went or changed their labels. */
  onChange: (works: Iterable<string>) => void
}

const knownMs = 2000

/** The namespaces of this cluster with their labels, watched while some work chooses among them. */
export class Namespaces {
  readonly #options: NamespacesOptions
  readonly #works = new Set<string>()
  #watch: { informer: Informer<KubeObject>; stop: AbortController } | undefined
  #revision = 0

  constructor(options: NamespacesOptions) {
    this.#options = options
  }

  /** Another number whenever another choice is possible. */
  get revision(): number {
    return this.#revision
  }

  /** Says whether a work chooses among namespaces. */
  usedBy(work: string, used: boolean): void {
    if (used) this.#works.add(work)
    else this.#works.delete(work)
    if (this.#works.size === 0) this.stop()
    else if (!this.#watch) this.#start()
  }

  /** Settles when they are known, or after a while: a work that has just come must not report in vain that they are not. */
  async known(signal: AbortSignal): Promise<void> {
    const informer = this.#watch?.informer
    if (!informer || informer.hasSynced) return
    const over = new AbortController()
    const wait = sleep(this.#options.clock, knownMs, AbortSignal.any([signal, over.signal])).catch(() => {})
    await Promise.race([informer.synced, wait])
    over.abort()
  }

  /** The names of those that match, in order; undefined while they are not known. Those that are being deleted have no place for anything. */
  matching(selector: LabelSelector): string[] | undefined {
    const informer = this.#watch?.informer
    if (!informer?.hasSynced) return undefined
    return informer
      .list()
      .filter(({ metadata }) => !metadata.deletionTimestamp && matchesSelector(selector, metadata.labels))
      .map(({ metadata }) => metadata.name!)
      .toSorted()
  }

  stop(): void {
    this.#watch?.stop.abort()
    this.#watch = undefined
  }

  #start(): void {
    const { client, clock, log } = this.#options
    const stop = new AbortController()
    const informer = new Informer<KubeObject>({
      client,
      clock,
      log,
      resource: Namespace,
      metadataOnly: true,
      transform: ({ metadata: { name, uid, resourceVersion, labels, deletionTimestamp } }) => ({
        metadata: { name, uid, resourceVersion, labels, deletionTimestamp },
      }),
    })
    const changed = (): void => {
      this.#revision++
      if (!stop.signal.aborted && informer.hasSynced) this.#options.onChange([...this.#works])
    }
    informer.on({
      added: changed,
      updated: ({ metadata: now }, { metadata: old }) => {
        if (!equal(now.labels, old.labels) || now.deletionTimestamp !== old.deletionTimestamp) changed()
      },
      deleted: changed,
    })
    this.#watch = { informer, stop }
    void informer.run(stop.signal)
    void informer.synced.then(changed)
  }
}
