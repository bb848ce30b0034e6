import { backOffMs, timely } from './back-off.ts'
import type { AwsClient } from './client.ts'
import { realClock, type Clock } from './clock.ts'
import type { Credentials, CredentialSource } from './credentials.ts'
import { AwsError, failedFor, type FailureReason } from './errors.ts'
import { explained, sourceFailed } from './explain.ts'
import { Gate } from './gate.ts'
import {
  describeChain,
  linksOf,
  recipeKey,
  type ObjectReference,
  type Recipe,
  type TokenWanted,
  type WebIdentityRole,
} from './recipe.ts'
import { Refreshed, type Expiring } from './refreshed.ts'
import { fromStore, limited } from './sources.ts'
import { assumeRole, assumeRoleWithWebIdentity, getCallerIdentity, type Caller } from './sts.ts'

export interface CacheOptions {
  aws: AwsClient
  /** The process's own credentials; see `fromDefaultChain`. */
  controller: CredentialSource
  /** Reads an access key. It is asked at each use, so it should answer from near by. */
  secret: (secret: ObjectReference, signal?: AbortSignal) => Promise<Credentials>
  /** Asks for a service account's token. */
  token: (wanted: TokenWanted, signal?: AbortSignal) => Promise<string>
  clock?: Clock | undefined
  random?: (() => number) | undefined
  /** Told of each lookup: for metrics. */
  onLookup?: ((result: Lookup) => void) | undefined
  limits?: Partial<CacheLimits> | undefined
}

export interface CacheLimits {
  /** Recipes held; the one that was used least recently goes first. */
  recipes: number
  /** A recipe goes when nobody has used it, or anything that stands on it, for so long. */
  unusedMs: number
  /** Calls under way to one account in one region. */
  callsPerAccount: number
}

export type Lookup = 'held' | 'obtained' | 'failed'

/** What somebody changed. */
export type Changed =
  | { secret: ObjectReference }
  | { account: ObjectReference }
  /** Asked for each link of each chain. */
  | ((link: Recipe) => boolean)

/** One recipe as people are shown it: there is no secret in it. */
export interface Inspection {
  recipe: Recipe
  chain: string
  /** Who AWS says this is, where known. */
  arn: string | undefined
  accountId: string | undefined
  expiration: number | undefined
  refreshAt: number | undefined
  /** That a session is shorter than it is asked for, and why. */
  limit: string | undefined
  /** New credentials are being got now. */
  underWay: boolean
  lastUsed: number
  lastError:
    | { reason: FailureReason; message: string; link: string | undefined; at: number; nextTry: number }
    | undefined
}

interface Entry {
  recipe: Recipe
  credentials: Refreshed<Credentials>
  lastUsed: number
  limit: string | undefined
  /** Who AWS says this is, and for which access key it said so. */
  caller: { of: string; answer: Refreshed<KnownCaller> } | undefined
  forgotten: boolean
}

type KnownCaller = Caller & Expiring

/** Nobody's keys become somebody else's; but an account can be closed. */
const callerKnownMs = 6 * 3_600_000

const defaults: CacheLimits = { recipes: 10_000, unusedMs: 3_600_000, callsPerAccount: 10 }

/**
 * Credentials by recipe: whoever asks for the same recipe gets the same credentials, and chains that begin alike share their
 * beginnings. Nobody has to know about clusters, controllers or expiry; one asks before each use.
 */
export class CredentialCache {
  readonly #options: CacheOptions
  readonly #limits: CacheLimits
  readonly #clock: Clock
  readonly #random: () => number
  readonly #entries = new Map<string, Entry>() // those used last come last
  readonly #gates = new Map<string, Gate>()
  readonly #keys = new WeakMap<Recipe, string>()
  #cancelSweep: (() => void) | undefined

  constructor(options: CacheOptions) {
    this.#options = options
    this.#limits = { ...defaults, ...options.limits }
    this.#clock = options.clock ?? realClock
    this.#random = options.random ?? Math.random
  }

  /** Credentials that are good now, and for a minute at least. */
  async get(recipe: Recipe, signal?: AbortSignal): Promise<Credentials> {
    const entry = this.#entry(recipe)
    const fresh = entry.credentials.fresh()
    if (fresh) {
      this.#options.onLookup?.('held')
      return fresh
    }
    const before = entry.credentials.state.value
    try {
      const value = await this.#current(recipe, (current) => current.credentials.get(signal))
      this.#options.onLookup?.(value === before ? 'held' : 'obtained')
      return value
    } catch (error) {
      this.#options.onLookup?.('failed')
      throw timely(error, this.#nextTry(recipe), this.#clock.now())
    }
  }

  /** `get` for one recipe, for those who want a source. */
  source(recipe: Recipe): CredentialSource {
    return (signal) => this.get(recipe, signal)
  }

  /** Who AWS says these credentials are. A role's answer tells it already; keys cost one call, until they change. */
  async caller(recipe: Recipe, region: string, signal?: AbortSignal): Promise<Caller> {
    const credentials = await this.get(recipe, signal)
    const { accountId, arn, userId, accessKeyId } = credentials
    if (accountId && arn && userId) return { account: accountId, arn, userId }
    const entry = this.#entry(recipe)
    if (entry.caller?.of !== accessKeyId) entry.caller = { of: accessKeyId, answer: this.#asked(recipe, region) }
    const { expiration: _until, ...caller } = await entry.caller.answer.get(signal)
    return caller
  }

  /** Something that credentials are made of has changed: what stands on it is got anew, and its failures are forgotten. */
  forget(changed: Changed): number {
    const concerns = typeof changed === 'function' ? changed : (link: Recipe) => madeOf(link, changed)
    const gone = [...this.#entries].filter(([, { recipe }]) => linksOf(recipe).some(concerns))
    // Who waits for one that is under way finds that it is not the current one any more, and asks again.
    for (const [key, entry] of gone) {
      entry.forgotten = true
      this.#entries.delete(key)
    }
    return gone.length
  }

  /** What is held, for people. */
  inspect(): Inspection[] {
    return [...this.#entries.values()].map(({ recipe, credentials, lastUsed, limit, caller }) => {
      const { value, refreshAt, error, failedAt, nextTry, underWay } = credentials.state
      return {
        recipe,
        chain: describeChain(recipe),
        arn: value?.arn ?? caller?.answer.state.value?.arn,
        accountId: value?.accountId ?? caller?.answer.state.value?.account,
        expiration: value?.expiration,
        refreshAt: value?.expiration === undefined ? undefined : refreshAt,
        limit,
        underWay,
        lastUsed,
        lastError:
          error instanceof AwsError
            ? { reason: error.reason, message: error.message, link: error.link, at: failedAt!, nextTry: nextTry! }
            : undefined,
      }
    })
  }

  /** How many recipes are held. */
  get size(): number {
    return this.#entries.size
  }

  /** Ends what is under way and drops everything. */
  close(): void {
    this.#cancelSweep?.()
    for (const { credentials } of this.#entries.values()) credentials.close()
    this.#entries.clear()
    this.#gates.clear()
  }

  /** Asks the entry of a recipe; again, if somebody forgot it meanwhile. */
  async #current(recipe: Recipe, ask: (entry: Entry) => Promise<Credentials>): Promise<Credentials> {
    for (;;) {
      const entry = this.#entry(recipe)
      const outcome = await ask(entry).then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      )
      if ('value' in outcome && !entry.forgotten) return outcome.value
      if ('error' in outcome && !(entry.forgotten && outcome.error instanceof AwsError)) throw outcome.error
    }
  }

  #entry(recipe: Recipe): Entry {
    const key = this.#key(recipe)
    const found = this.#entries.get(key)
    const entry = found ?? this.#newEntry(recipe)
    entry.lastUsed = this.#clock.now()
    if (found) this.#entries.delete(key)
    this.#entries.set(key, entry)
    if (!found) this.#bound()
    return entry
  }

  #key(recipe: Recipe): string {
    let key = this.#keys.get(recipe)
    if (key === undefined) this.#keys.set(recipe, (key = recipeKey(recipe)))
    return key
  }

  #newEntry(recipe: Recipe): Entry {
    const credentials = this.#refreshed(recipe, (signal) => this.#obtain(recipe, entry, signal))
    const entry: Entry = { recipe, credentials, lastUsed: 0, limit: undefined, caller: undefined, forgotten: false }
    return entry
  }

  #refreshed<T extends Expiring>(recipe: Recipe, obtain: (signal: AbortSignal) => Promise<T>): Refreshed<T> {
    const backOff = (error: unknown, failures: number): number =>
      backOffMs(error, failures, recipe) * (0.5 + this.#random() / 2)
    return new Refreshed({ obtain, clock: this.#clock, random: this.#random, backOff })
  }

  #asked(recipe: Recipe, region: string): Refreshed<KnownCaller> {
    return this.#refreshed(recipe, async (signal) => {
      const credentials = await this.#source(recipe)
      const ask = (): Promise<Caller> => getCallerIdentity(this.#options.aws, credentials, region, signal)
      const caller = await this.#through([region, this.#key(recipe)], recipe, ask)
      return { ...caller, expiration: this.#clock.now() + callerKnownMs }
    })
  }

  /** When the link that failed is tried again. */
  #nextTry(recipe: Recipe): number {
    const tries = linksOf(recipe).map((link) => this.#entries.get(this.#key(link))?.credentials.state.nextTry ?? 0)
    return Math.max(...tries)
  }

  async #obtain(recipe: Recipe, entry: Entry, signal: AbortSignal): Promise<Credentials> {
    const { aws, controller, secret, token } = this.#options
    if (recipe.kind === 'controller') return orSourceFailed(recipe, controller(signal))
    if (recipe.kind === 'static') return orSourceFailed(recipe, fromStore(() => secret(recipe.secret, signal))())
    if (recipe.kind === 'role') return this.#assumed(recipe, entry, signal)
    const { account, audiences, expirationSeconds, role } = recipe
    const proof = await orSourceFailed(recipe, token({ account, audiences, expirationSeconds }, signal))
    return this.#through(wayTo(role), recipe, () => assumeRoleWithWebIdentity(aws, proof, role, signal))
  }

  async #assumed(recipe: Recipe & { kind: 'role' }, entry: Entry, signal: AbortSignal): Promise<Credentials> {
    const assume = async (source: Credentials): Promise<Credentials> => {
      const { role, limit } = limited(recipe.role, source)
      entry.limit = limit
      return this.#through(wayTo(role), recipe, () => assumeRole(this.#options.aws, source, role, signal), source.arn)
    }
    const source = await this.#source(recipe.source)
    try {
      return await assume(source)
    } catch (error) {
      if (!failedFor(error, 'ExpiredToken', 'InvalidCredentials')) throw error
      // Revoked, or our clock is wrong: whoever is next gets another; temporary ones can be had at once.
      this.#entries.get(this.#key(recipe.source))?.credentials.refuse(source)
      if (source.expiration === undefined) throw error
      return assume(await this.#source(recipe.source))
    }
  }

  #source(recipe: Recipe): Promise<Credentials> {
    return this.#current(recipe, (entry) => entry.credentials.forOneCall())
  }

  /** Calls STS through the gate of one way to AWS; a failure names the link and what to change. */
  async #through<T>(way: string[], link: Recipe, call: () => Promise<T>, sourceArn?: string): Promise<T> {
    const name = JSON.stringify(way)
    const width = this.#limits.callsPerAccount
    let gate = this.#gates.get(name)
    if (!gate) this.#gates.set(name, (gate = new Gate({ clock: this.#clock, random: this.#random, width })))
    try {
      return await gate.run(call)
    } catch (error) {
      throw error instanceof AwsError ? explained(error, link, sourceArn) : error
    }
  }

  #bound(): void {
    for (const key of this.#entries.keys()) {
      if (this.#entries.size <= this.#limits.recipes) break
      this.#entries.delete(key)
    }
    this.#cancelSweep ??= this.#clock.after(this.#limits.unusedMs / 4, () => this.#sweep())
  }

  /** Lets go of what nobody uses, itself or through something that stands on it. */
  #sweep(): void {
    const since = this.#clock.now() - this.#limits.unusedMs
    const inUse = [...this.#entries.values()].filter(({ lastUsed }) => lastUsed >= since)
    const needed = new Set(inUse.flatMap(({ recipe }) => linksOf(recipe).map((link) => this.#key(link))))
    for (const key of this.#entries.keys()) if (!needed.has(key)) this.#entries.delete(key)
    for (const [name, gate] of this.#gates) if (gate.idle) this.#gates.delete(name)
    this.#cancelSweep = undefined
    if (this.#entries.size > 0 || this.#gates.size > 0)
      this.#cancelSweep = this.#clock.after(this.#limits.unusedMs / 4, () => this.#sweep())
  }
}

/** Region and account: what AWS throttles, and what fails together. */
const wayTo = ({ region, arn }: WebIdentityRole): string[] => [region, arn.split(':')[4] ?? '']

const madeOf = (link: Recipe, changed: Exclude<Changed, (link: Recipe) => boolean>): boolean => {
  if ('secret' in changed) return link.kind === 'static' && same(link.secret, changed.secret)
  return link.kind === 'serviceAccount' && same(link.account, changed.account)
}

const same = (a: ObjectReference, b: ObjectReference): boolean => a.namespace === b.namespace && a.name === b.name

const orSourceFailed = async <T>(link: Recipe, given: Promise<T>): Promise<T> => {
  try {
    return await given
  } catch (error) {
    throw sourceFailed(link, error)
  }
}
