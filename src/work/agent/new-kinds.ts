import { CustomResourceDefinition, type Api, type KubeObject } from '../../kube/index.ts'
import { Informer, type Clock, type Logger } from '../../runtime/index.ts'

/** Watches CRDs while some work has manifests of a kind that is not served, and tells when that may have changed. */
export class NewKinds {
  readonly #options: { client: Api; clock: Clock; log: Logger; onChange: (waiting: Iterable<string>) => void }
  readonly #waiting = new Set<string>()
  #watch: AbortController | undefined

  constructor(options: { client: Api; clock: Clock; log: Logger; onChange: (waiting: Iterable<string>) => void }) {
    this.#options = options
  }

  /** Says whether a work waits for a kind. */
  waits(work: string, waiting: boolean): void {
    if (waiting) this.#waiting.add(work)
    else this.#waiting.delete(work)
    if (this.#waiting.size === 0) this.stop()
    else if (!this.#watch) this.#start()
  }

  stop(): void {
    this.#watch?.abort()
    this.#watch = undefined
  }

  #start(): void {
    const watch = (this.#watch = new AbortController())
    const { client, clock, log, onChange } = this.#options
    const informer = new Informer<KubeObject>({
      client,
      clock,
      log,
      resource: CustomResourceDefinition,
      metadataOnly: true,
      transform: ({ metadata: { name, uid, resourceVersion } }) => ({ metadata: { name, uid, resourceVersion } }),
    })
    const tell = (): void => {
      if (!watch.signal.aborted && informer.hasSynced) onChange([...this.#waiting])
    }
    informer.on({ added: tell, updated: tell, deleted: tell })
    void informer.run(watch.signal)
    // One may have come between the last look and the first list.
    void informer.synced.then(tell)
  }
}
