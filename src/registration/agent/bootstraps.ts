import { decoded, Secret, type Client, type SecretData } from '../../kube/index.ts'
import { describeError, Informer, type Clock, type Logger } from '../../runtime/index.ts'
import type { AgentDriver } from '../drivers/driver.ts'
import type { Candidate } from './hubs.ts'

export interface BootstrapsOptions {
  local: Client
  namespace: string
  /** In order of preference. */
  names: readonly string[]
  driver: AgentDriver
  clock: Clock
  log: Logger
}

/** Follows the bootstrap secrets and knows where each leads. A broken one says so, and is read again when it changes. */
export class Bootstraps {
  readonly #options: BootstrapsOptions
  readonly #informers: Informer<Secret>[]
  readonly #listeners = new Set<() => void>()
  #candidates: readonly Candidate[] = []
  #reading: Promise<void> = Promise.resolve()

  constructor(options: BootstrapsOptions) {
    const { local, namespace, names, clock, log } = options
    this.#options = options
    this.#informers = names.map((name) => {
      const fieldSelector = `metadata.name=${name}`
      return new Informer({ client: local, resource: Secret, namespace, fieldSelector, clock, log })
    })
  }

  /** What the secrets say, as they were read last. */
  get candidates(): readonly Candidate[] {
    return this.#candidates
  }

  /** For a secret that can be read and leads nowhere nevertheless: it is passed over until it changes. */
  reject(source: string, bootstrap: SecretData, why: string): void {
    const problem = `${source} to be mended: ${why}`
    this.#options.log.error('a bootstrap secret cannot be used', { problem })
    this.#candidates = this.#candidates.map((c) =>
      c.source === source && c.bootstrap === bootstrap ? { source, bootstrap, problem } : c,
    )
  }

  /** Told after each change; the answer takes the listener out. */
  on(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Settles when each secret has been read once. */
  async synced(): Promise<void> {
    await Promise.all(this.#informers.map((informer) => informer.synced))
    await this.#read()
  }

  async run(signal: AbortSignal): Promise<void> {
    for (const informer of this.#informers)
      informer.on({
        added: () => void this.#read(),
        updated: () => void this.#read(),
        deleted: () => void this.#read(),
      })
    await Promise.all(this.#informers.map((informer) => informer.run(signal)))
  }

  /** One after the other, so that the last to finish is the last that was asked for. */
  #read(): Promise<void> {
    this.#reading = this.#reading.then(async () => {
      this.#candidates = await Promise.all(this.#informers.map((informer, i) => this.#candidate(informer, i)))
      for (const listener of this.#listeners) listener()
    })
    this.#reading = this.#reading.catch((error: unknown) => {
      this.#options.log.error('the bootstrap secrets could not be looked at', { error })
    })
    return this.#reading
  }

  async #candidate(informer: Informer<Secret>, index: number): Promise<Candidate> {
    const { namespace, names, driver, log } = this.#options
    const name = names[index]!
    const source = `secret ${namespace}/${name}`
    const bootstrap = decoded(informer.get(`${namespace}/${name}`))
    if (!bootstrap) {
      const problem = `${source} with the kubeconfig of a hub: it does not exist; clusteradm join creates it`
      return { source, problem }
    }
    try {
      return { source, bootstrap, address: await driver.hubOf(bootstrap, source) }
    } catch (error) {
      log.error('a bootstrap secret cannot be used', { error })
      return { source, bootstrap, problem: `${source} to be mended: ${describeError(error)}` }
    }
  }
}
