import { isAlreadyExists, isConflict, isNotFound, Secret, type Client, type ResourceClient } from '../../kube/index.ts'
import type { Reason } from '../checks.ts'
import { sleep, systemClock, type Clock } from '../clock.ts'
import { silentLogger, type Logger } from '../log.ts'
import { decode, encode, servingOf, type Held, type Serving } from './held.ts'
import { rotate } from './rotation.ts'

const minute = 60_000
const day = 24 * 60 * minute

/** What `webhookCertificates` needs. */
export interface WebhookCertificatesOptions {
  client: Client
  /** What they are for, as logs and errors call it; `webhook` unless told. */
  server?: string | undefined
  namespace: string
  secretName: string
  /** As callers name the server: `<service>.<namespace>.svc`. */
  dnsNames: readonly string[]
  ipAddresses?: readonly string[] | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
  log?: Logger | undefined
  /** Ten years. */
  caValidityMs?: number | undefined
  /** 90 days. */
  validityMs?: number | undefined
  /** How long a new authority is trusted before it signs, and an old one after it did; an hour. */
  settleMs?: number | undefined
  /** How often the Secret is looked at; a minute. */
  intervalMs?: number | undefined
  /** Tells callers what to trust, on every look; see `caBundlePublisher`. */
  publish?: ((caBundle: string, signal: AbortSignal) => Promise<unknown>) | undefined
}

/** Certificates that are shared by all replicas of a webhook server, and that nobody has to think of. */
export const webhookCertificates = (options: WebhookCertificatesOptions): WebhookCertificates =>
  new WebhookCertificates(options)

/**
 * Keeps an authority and a serving certificate in one Secret: made when absent, repaired when damaged, renewed at two
 * thirds of their lifetime. Replicas need not agree who does it: the first write wins, and the others follow.
 */
export class WebhookCertificates {
  readonly #options: WebhookCertificatesOptions
  readonly #clock: Clock
  readonly #log: Logger
  readonly #secrets: ResourceClient<Secret>
  readonly #renewAfter: number
  readonly #name: string
  readonly #listeners = new Set<(current: Serving) => void>()
  #held: Held | undefined
  #current: Serving | undefined
  #pass: Promise<void> | undefined

  constructor(options: WebhookCertificatesOptions) {
    this.#options = options
    this.#name = `${options.server ?? 'webhook'} certificates`
    this.#clock = options.clock ?? systemClock
    this.#log = (options.log ?? silentLogger).with({ secret: `${options.namespace}/${options.secretName}` })
    this.#secrets = options.client.of(Secret, options.namespace)
    this.#renewAfter = 2 / 3 + 0.05 * (options.random ?? Math.random)()
  }

  /** What to serve with, and what callers should trust. */
  readonly current = (): Serving => {
    if (!this.#current) throw new Error(`the ${this.#name} are not there yet: await ensure() first`)
    return this.#current
  }

  /** Called whenever `current` differs from before; the answer ends that. */
  onChange(listener: (current: Serving) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Looks at the Secret once, and does what has to be done. */
  ensure(signal?: AbortSignal): Promise<void> {
    this.#pass ??= this.#ensure(signal).finally(() => (this.#pass = undefined))
    return this.#pass
  }

  /** Keeps them fresh and published until the signal; failures are logged and tried again. */
  async run(signal: AbortSignal): Promise<void> {
    const { intervalMs = minute, publish } = this.#options
    while (!signal.aborted) {
      let pauseMs = intervalMs
      try {
        await this.ensure(signal)
        await publish?.(this.current().caBundle, signal)
      } catch (error) {
        pauseMs = Math.min(intervalMs, 5000)
        if (!signal.aborted) this.#log.warn(`${this.#name} could not be kept up`, { error })
      }
      await sleep(this.#clock, pauseMs, signal).catch(() => {})
    }
  }

  async #ensure(signal: AbortSignal | undefined): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const secret = await this.#secrets.find(this.#options.secretName, { signal })
      const { held, reasons } = this.#rotate(decode(secret?.data))
      try {
        if (reasons.length > 0) await this.#write(secret, held, reasons, signal)
        return this.#adopt(held)
      } catch (error) {
        // Another replica was faster: what it wrote counts.
        const overtaken = isAlreadyExists(error) || isConflict(error) || isNotFound(error)
        if (!overtaken || attempt >= 5) throw error
      }
    }
  }

  #rotate(held: Held): ReturnType<typeof rotate> {
    const { secretName, namespace, dnsNames, ipAddresses = [], settleMs = 60 * minute } = this.#options
    const { caValidityMs = 3650 * day, validityMs = 90 * day } = this.#options
    return rotate(
      { ...held, dnsNames, ipAddresses, settleMs, renewAfter: this.#renewAfter, now: this.#clock.now() },
      { commonName: `${secretName}.${namespace}`, caValidityMs, validityMs },
      this.#held,
    )
  }

  async #write(
    secret: Secret | undefined,
    held: Held,
    reasons: Reason[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { namespace, secretName: name } = this.#options
    const data = { ...secret?.data, ...encode(held) }
    if (secret) await this.#secrets.update({ ...secret, data }, { signal })
    else await this.#secrets.create({ metadata: { name, namespace }, type: 'kubernetes.io/tls', data }, { signal })
    this.#log.info(`${this.#name} renewed`, { reasons, expires: held.serving?.validToDate.toISOString() })
  }

  #adopt(held: Held): void {
    const next = servingOf(held)
    const before = this.#current
    this.#held = held
    if (before?.cert === next.cert && before.key === next.key && before.caBundle === next.caBundle) return
    this.#current = next
    for (const listener of this.#listeners) {
      try {
        listener(next)
      } catch (error) {
        this.#log.error(`a listener to ${this.#name} failed`, { error })
      }
    }
  }
}
