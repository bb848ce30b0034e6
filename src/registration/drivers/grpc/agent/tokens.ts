import { randomUUID } from 'node:crypto'
import { dataType, heartbeatType, readEvent, type CloudEvent } from '../../../../events/index.ts'
import type { CallOptions, KubeObject, ObjectApi, ServiceAccount, Unstructured } from '../../../../kube/index.ts'
import { sleep } from '../../../../runtime/index.ts'
import type { Link } from './link.ts'
import { Listening } from './listening.ts'

const answerMs = 30_000

/** Asks for tokens: a question is published, and the answer comes over a subscription, known by an id that we gave. */
export class Tokens {
  readonly #link: Link
  readonly #listening: Listening
  readonly #asked = new Map<string, PromiseWithResolvers<KubeObject>>()

  constructor(link: Link) {
    this.#link = link
    this.#listening = new Listening(link, dataType.tokenRequests, {
      heard: (event) => this.#heard(event),
      lost: (error) => this.#lost(error),
    })
  }

  async request(
    account: { name: string; namespace: string },
    body: Unstructured,
    call: CallOptions,
  ): Promise<KubeObject> {
    await this.#listening.live(call)
    const uid = randomUUID()
    const answer = Promise.withResolvers<KubeObject>()
    answer.promise.catch(() => {})
    this.#asked.set(uid, answer)
    const over = new AbortController()
    const stop = (): void => over.abort(call.signal!.reason)
    call.signal?.addEventListener('abort', stop, { once: true })
    try {
      const type = { dataType: dataType.tokenRequests, side: 'spec', action: 'create_request' } as const
      const { spec } = body
      const data = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: { ...account, uid }, spec }
      await this.#link.publish({ ...type, resourceId: uid, data }, call)
      return await Promise.race([answer.promise, this.#late(over.signal)])
    } finally {
      call.signal?.removeEventListener('abort', stop)
      over.abort()
      this.#asked.delete(uid)
    }
  }

  close(): void {
    this.#listening.close()
  }

  async #late(signal: AbortSignal): Promise<never> {
    await sleep(this.#link.clock, answerMs, signal)
    throw this.#link.refusal(504, 'the hub has made a token and its answer did not come', dataType.tokenRequests)
  }

  #heard(event: CloudEvent): void {
    if (event.type === heartbeatType) return void this.#listening.renewIfDue().catch(() => {})
    const read = readEvent(event)
    if (read?.dataType !== dataType.tokenRequests) return
    try {
      const answer = read.data() as KubeObject | undefined
      this.#asked.get(answer?.metadata.uid ?? read.resourceId)?.resolve(answer!)
    } catch {
      // Nothing of it is told: it may be a token.
      this.#link.log.warn('the hub sent an answer to a token request that cannot be read')
    }
  }

  #lost(error: unknown): void {
    for (const { reject } of this.#asked.values()) reject(error)
  }
}

/** Service accounts are seen only through the tokens that are asked for them. */
export const accountsOf = (
  tokens: Tokens,
  namespace: string | undefined,
  others: ObjectApi<ServiceAccount>,
): ObjectApi<ServiceAccount> => ({
  ...others,
  subresource: async <R>(...args: Parameters<ObjectApi<ServiceAccount>['subresource']>): Promise<R> => {
    const [name, subresource, call, options = {}] = args
    if (subresource !== 'token' || call.method !== 'POST') return others.subresource<R>(...args)
    const account = { name, namespace: namespace ?? '' }
    return (await tokens.request(account, call.body as Unstructured, options)) as R
  },
})
