import {
  ApiError,
  ConnectionError,
  isForbidden,
  isInvalid,
  isNotFound,
  isTooManyRequests,
  ServiceAccount,
  type Client,
} from '../../kube/index.ts'
import { describeError, firstOf, type Reason } from '../../runtime/index.ts'

/** What is asked of the managed cluster. */
export interface TokenAsk {
  readonly namespace: string
  readonly name: string
  readonly audiences: readonly string[]
  readonly seconds: number
}

/** What it gave. */
export interface Issued {
  readonly token: string
  readonly expiresAt: number
  readonly lifetimeMs: number
}

interface Answer {
  status?: { token?: string; expirationTimestamp?: string }
}

/** Asks for a token. Without audiences the API server puts in its own. */
export const requestToken = async (local: Client, ask: TokenAsk, now: number, signal: AbortSignal): Promise<Issued> => {
  const { namespace, name, audiences, seconds } = ask
  const spec = { expirationSeconds: seconds, ...(audiences.length > 0 && { audiences }) }
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec }
  const answer = await local
    .of(ServiceAccount, namespace)
    .subresource<Answer>(name, 'token', { method: 'POST', body }, { signal })
  const { token = '', expirationTimestamp = '' } = answer.status ?? {}
  const expiresAt = Date.parse(expirationTimestamp)
  if (!token || Number.isNaN(expiresAt)) throw new Error('the API server answered without a token')
  return { token, expiresAt, lifetimeMs: lifetimeIn(token) ?? expiresAt - now }
}

/** By the token's own words: both ends are of one clock. */
const lifetimeIn = (token: string): number | undefined => {
  try {
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as {
      iat?: unknown
      exp?: unknown
    }
    const { iat, exp } = claims
    return typeof iat === 'number' && typeof exp === 'number' && exp > iat ? (exp - iat) * 1000 : undefined
  } catch {
    return undefined
  }
}

/** Why there is no token, and what to do about it. */
const failures = firstOf<{ error: unknown; ask: TokenAsk }>([
  ({ error, ask }) =>
    isInvalid(error) && {
      reason: 'RequestRefused',
      message: `the managed cluster refuses spec.rotation.validity (${ask.seconds} s) or spec.audiences: ${error.serverMessage}; correct the spec`,
    },
  ({ error, ask }) =>
    isForbidden(error) && {
      reason: 'NotAllowed',
      message: `the agent may not request tokens of service accounts in namespace ${ask.namespace}: its Role there needs create for serviceaccounts/token; the add-on's ManifestWork brings it`,
    },
  ({ error, ask }) =>
    isNotFound(error) && {
      reason: 'AccountMissing',
      message: `service account ${ask.namespace}/${ask.name} is gone; it is made again`,
    },
  ({ error }) => isTooManyRequests(error) && { reason: 'ClusterBusy', message: 'the managed cluster is busy' },
  ({ error }) =>
    (error instanceof ConnectionError || (error instanceof ApiError && error.status >= 500)) && {
      reason: 'ClusterUnreachable',
      message: `the managed cluster does not answer: ${describeError(error)}`,
    },
])

/** The reason of a TokenRequest that failed; no token is ever in it. */
export const whyNoToken = (error: unknown, ask: TokenAsk): Reason =>
  failures({ error, ask }) ?? { reason: 'RequestFailed', message: describeError(error) }
