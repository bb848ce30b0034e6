import { ManagedCluster, ManagedClusterSet, ManagedServiceAccount } from '../../api/index.ts'
import {
  clientFor,
  kubeconfigText,
  parseKey,
  Secret,
  type Api,
  type Client,
  type ClientOptions,
  type Connection,
  type Credential,
} from '../../kube/index.ts'
import {
  Informers,
  sleep,
  systemClock,
  type Clock,
  type Handler,
  type Informer,
  type Logger,
} from '../../runtime/index.ts'
import { managedSelector } from '../contract.ts'
import { addressOf, trustOf } from './address.ts'
import { TokenError, whyMissing, type Sought } from './missing.ts'
import { isSelected, type TokenSelection } from './selection.ts'
import { readTokenSecret } from './token-secret.ts'

/** A token of a managed cluster, as it is now: everything but the token, so that it can be logged. */
export interface ManagedToken {
  readonly cluster: string
  /** Of the ManagedServiceAccount. */
  readonly name: string
  /** Where it is good for. */
  readonly server: string
  /** When it ends, if it says so. Long before, there is another. */
  readonly expires: Date | undefined
  readonly labels: Readonly<Record<string, string>>
  readonly clusterLabels: Readonly<Record<string, string>>
}

/** Told of tokens that come, are renewed or otherwise differ, and go; first of those that are there. */
export interface TokenHandler {
  added?(token: ManagedToken): void
  changed?(token: ManagedToken, old: ManagedToken): void
  removed?(token: ManagedToken): void
}

export interface TokensOptions extends TokenSelection {
  /** The hub, as somebody who may list and watch ManagedClusters, ManagedServiceAccounts and their Secrets. */
  client: Api
  /** How long a request waits for a token that is missing, or for another where the API server refuses the present one. */
  patienceMs?: number | undefined
  /** Until the first lists are complete. */
  syncTimeoutMs?: number | undefined
  /** For the clients of managed clusters. */
  clientOptions?: ClientOptions | undefined
  clock?: Clock | undefined
  log?: Logger | undefined
}

interface Held {
  readonly token: ManagedToken
  /** The same object while token and certificates stay the same: connections are kept by it. */
  readonly credential: Credential
  readonly resourceVersion: string
}

/** The tokens that are meant, kept current by watches; and clients that go with them. */
export class Tokens {
  readonly #options: TokensOptions
  readonly #clock: Clock
  readonly #informers: Informers
  readonly #clusters: Informer<ManagedCluster>
  readonly #accounts: Informer<ManagedServiceAccount>
  readonly #secrets: Informer<Secret>
  readonly #sets: Informer<ManagedClusterSet> | undefined
  readonly #held = new Map<string, Held>()
  readonly #handlers = new Set<TokenHandler>()
  readonly #waiting = new Set<(key: string) => void>()
  readonly #clients = new Map<string, Client>()
  /** Credentials for which a replacement was waited for in vain. */
  readonly #hopeless = new WeakSet<Credential>()
  readonly #stop = new AbortController()

  constructor(options: TokensOptions) {
    const { client, clusters, clusterSet, clock = systemClock, log } = options
    this.#options = options
    this.#clock = clock
    this.#informers = new Informers(client, { clock, log })
    const only = clusters?.length === 1 ? clusters[0] : undefined
    const byName = (name: string | undefined) => (name === undefined ? {} : { fieldSelector: `metadata.name=${name}` })
    const inNamespace = { ...(only && { namespace: only }), ...byName(options.name) }
    this.#clusters = this.#informers.of(ManagedCluster, byName(only))
    this.#accounts = this.#informers.of(ManagedServiceAccount, inNamespace)
    this.#secrets = this.#informers.of(Secret, { ...inNamespace, labelSelector: managedSelector })
    this.#sets = clusterSet === undefined ? undefined : this.#informers.of(ManagedClusterSet, byName(clusterSet))
  }

  /** Begins to follow; `openTokens` has done it. */
  async start(): Promise<void> {
    void this.#informers.run(this.#stop.signal)
    const { syncTimeoutMs = 60_000 } = this.#options
    const over = new AbortController()
    try {
      await Promise.race([this.#informers.synced(), this.#tooLate(syncTimeoutMs, over.signal)])
    } catch (error) {
      this.close()
      throw error
    } finally {
      over.abort()
    }
    const onChange = <T extends { metadata: object }>(keysOf: (object: T) => string[]): Handler<T> => {
      const refresh = (object: T): void => keysOf(object).forEach((key) => this.#refresh(key))
      return { added: refresh, updated: refresh, deleted: refresh }
    }
    const own = ({ metadata }: Secret | ManagedServiceAccount): string[] => [`${metadata.namespace}/${metadata.name}`]
    const allIn = (namespace?: string): string[] => this.#secrets.list(namespace).flatMap(own)
    this.#secrets.on(onChange(own))
    this.#accounts.on(onChange(own))
    this.#clusters.on(onChange(({ metadata }) => allIn(metadata.name)))
    this.#sets?.on(onChange(() => allIn()))
  }

  /** The tokens that can be used now, by cluster and name. */
  list(): ManagedToken[] {
    return [...this.#held].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, { token }]) => token)
  }

  get(cluster: string, name = this.#onlyName()): ManagedToken | undefined {
    return this.#held.get(`${cluster}/${name}`)?.token
  }

  /** Registers a handler, which is told of all that are there already. The answer takes it out again. */
  on(handler: TokenHandler): () => void {
    this.#handlers.add(handler)
    for (const token of this.list()) handler.added?.(token)
    return () => this.#handlers.delete(handler)
  }

  /**
   * A client of a managed cluster that takes the current token for each request. Ask for it each time it is needed: it stays
   * the same one while the cluster is where it was, and is closed with these tokens.
   */
  clientFor(cluster: string, name = this.#onlyName()): Client {
    const connection = this.connectionFor(cluster, name)
    const key = `${cluster}/${name}`
    const known = this.#clients.get(key)
    if (known?.connection.server === connection.server) return known
    known?.close()
    const client = clientFor(connection, { userAgent: 'lanyard-tokens', ...this.#options.clientOptions })
    this.#clients.set(key, client)
    return client
  }

  /** The same for those who bring a client of their own: where the cluster is, and the credential of each moment. */
  connectionFor(cluster: string, name = this.#onlyName()): Connection {
    const key = `${cluster}/${name}`
    const server = this.#held.get(key)?.token.server ?? this.#serverOf(cluster)
    if (server === undefined) throw this.#missing(key)
    return {
      source: `ManagedServiceAccount ${key}`,
      server,
      credentials: async ({ rejected, signal } = {}) => {
        const { token, credential } = await this.#current(key, rejected, signal)
        if (token.server === server) return credential
        // The cluster has moved: its new token must not go to who answers at the old address.
        throw new TokenError({
          reason: 'Moved',
          message: `${cluster} is no longer at ${server} but at ${token.server}: ask for its client again`,
        })
      },
    }
  }

  /** A kubeconfig with the token of this moment in it: it is a secret, and ends with the token. */
  async kubeconfigFor(cluster: string, name = this.#onlyName()): Promise<string> {
    const { token, credential } = await this.#current(`${cluster}/${name}`)
    const user = { token: credential.token! }
    return kubeconfigText({ cluster, userName: name, server: token.server, ca: credential.ca, user })
  }

  close(): void {
    this.#stop.abort()
    for (const client of this.#clients.values()) client.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #onlyName(): string {
    if (this.#options.name !== undefined) return this.#options.name
    throw new TypeError('say which ManagedServiceAccount: these tokens were opened without a name')
  }

  #serverOf(clusterName: string): string | undefined {
    const cluster = this.#clusters.get(clusterName)
    return cluster && addressOf(cluster)?.server
  }

  #sought(key: string): Sought {
    const { namespace: clusterName = '', name } = parseKey(key)
    const [account, secret] = [this.#accounts.get(key), this.#secrets.get(key)]
    return { clusterName, name, cluster: this.#clusters.get(clusterName), account, secret }
  }

  #missing(key: string): TokenError {
    const message = `ManagedServiceAccount ${key} is not among those that these tokens were opened for`
    return new TokenError(whyMissing(this.#sought(key)) ?? { reason: 'NotSelected', message })
  }

  /** What the caches say about a token now; undefined when it cannot be used or is not meant. */
  #read(key: string): Held | undefined {
    const sought = this.#sought(key)
    const { clusterName, name, cluster, account, secret } = sought
    if (!cluster || !account || !secret || whyMissing(sought)) return undefined
    const { clusterSet } = this.#options
    const set = clusterSet === undefined ? undefined : this.#sets?.get(clusterSet)
    const read = readTokenSecret(secret)
    const address = addressOf(cluster)
    if ('problem' in read || !address || !isSelected(this.#options, { name, cluster, account, set })) return undefined
    return {
      token: {
        cluster: clusterName,
        name,
        server: address.server,
        expires: read.expiresAt === undefined ? undefined : new Date(read.expiresAt),
        labels: account.metadata.labels ?? {},
        clusterLabels: cluster.metadata.labels ?? {},
      },
      credential: { token: read.token, ca: trustOf(address, read.ca) },
      resourceVersion: [secret, account, cluster].map(({ metadata }) => metadata.resourceVersion).join(),
    }
  }

  #refresh(key: string): void {
    const old = this.#held.get(key)
    const read = this.#read(key)
    if (!read) {
      if (!this.#held.delete(key)) return
      return this.#tell((handler) => handler.removed?.(old!.token))
    }
    if (old?.resourceVersion === read.resourceVersion && old.token.server === read.token.server) return
    const same = old?.credential.token === read.credential.token && old?.credential.ca === read.credential.ca
    this.#held.set(key, { ...read, credential: same && old ? old.credential : read.credential })
    for (const done of this.#waiting) done(key)
    this.#tell((handler) => (old ? handler.changed?.(read.token, old.token) : handler.added?.(read.token)))
  }

  // One handler's mistake must not keep a token from the others.
  #tell(tell: (handler: TokenHandler) => void): void {
    for (const handler of this.#handlers) {
      try {
        tell(handler)
      } catch (error) {
        this.#options.log?.error('a handler of tokens failed', { error })
      }
    }
  }

  /** The token of this moment. A missing or refused one is waited for: its agent may be about to report another. */
  async #current(key: string, rejected?: Credential, signal?: AbortSignal): Promise<Held> {
    const usable = (): Held | undefined => {
      const held = this.#held.get(key)
      return held && held.credential !== rejected ? held : undefined
    }
    const held = usable()
    if (held) return held
    if (!(rejected && this.#hopeless.has(rejected))) {
      const found = await this.#waitFor(key, usable, signal)
      if (found) return found
      if (rejected) this.#hopeless.add(rejected)
    }
    const present = this.#held.get(key)
    if (present) return present // refused, and there is no other: the caller sees the refusal itself
    throw this.#missing(key)
  }

  async #waitFor<T>(key: string, look: () => T | undefined, signal?: AbortSignal): Promise<T | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<T | undefined>()
    const done = (changed: string): void => {
      const found = changed === key ? look() : undefined
      if (found !== undefined) resolve(found)
    }
    const abort = (): void => reject(signal!.reason as Error)
    const end = (): void => resolve(undefined)
    const cancel = this.#clock.after(this.#options.patienceMs ?? 10_000, end)
    this.#waiting.add(done)
    this.#stop.signal.addEventListener('abort', end, { once: true })
    signal?.addEventListener('abort', abort, { once: true })
    if (signal?.aborted) abort()
    try {
      return await promise
    } finally {
      cancel()
      this.#waiting.delete(done)
      this.#stop.signal.removeEventListener('abort', end)
      signal?.removeEventListener('abort', abort)
    }
  }

  async #tooLate(ms: number, signal: AbortSignal): Promise<void> {
    await sleep(this.#clock, ms, signal).catch(() => undefined)
    if (signal.aborted) return
    throw new TokenError({
      reason: 'NotSynced',
      message: `the hub has not shown its ${this.#informers.unsynced.join(', ')} within ${ms / 1000} s: check that it can be reached, and that this account may list and watch them`,
    })
  }
}

/** Opens the tokens that are meant, and settles when all that there are now are known. */
export const openTokens = async (options: TokensOptions): Promise<Tokens> => {
  const tokens = new Tokens(options)
  await tokens.start()
  return tokens
}
