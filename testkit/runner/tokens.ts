import { ServiceAccount, type Client } from '../../src/kube/index.ts'
import type { Clock } from '../../src/runtime/index.ts'
import type { Pod, TokenProjection } from './kinds.ts'

interface TokenRequest {
  spec: { expirationSeconds: number }
  status: { token: string; expirationTimestamp: string }
}

/** The tokens of one pod, bound to it, each asked for again when 80 % of its life is over, and after a day at the latest. */
export class PodTokens {
  readonly #client: Client
  readonly #clock: Clock
  readonly #held = new Map<string, { token: string; refreshAt: number }>()

  constructor(client: Client, clock: Clock) {
    this.#client = client
    this.#clock = clock
  }

  /** When the next one is due. */
  get refreshAt(): number | undefined {
    const times = [...this.#held.values()].map((held) => held.refreshAt)
    return times.length ? Math.min(...times) : undefined
  }

  async get(pod: Pod, { audience, expirationSeconds = 3600 }: TokenProjection): Promise<string> {
    const id = JSON.stringify([audience, expirationSeconds])
    const held = this.#held.get(id)
    if (held && this.#clock.now() < held.refreshAt) return held.token
    const { name, namespace, uid } = pod.metadata
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        ...(audience ? { audiences: [audience] } : {}),
        expirationSeconds,
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
      },
    }
    const account = pod.spec.serviceAccountName || 'default'
    const { spec, status } = await this.#client
      .of(ServiceAccount, namespace)
      .subresource<TokenRequest>(account, 'token', { method: 'POST', body })
    const lifeMs = spec.expirationSeconds * 1000
    const issuedAt = Date.parse(status.expirationTimestamp) - lifeMs
    this.#held.set(id, { token: status.token, refreshAt: issuedAt + Math.min(lifeMs * 0.8, 86_400_000) })
    return status.token
  }
}
