import { X509Certificate } from 'node:crypto'
import type { Connection, Credential } from './connection.ts'
import { ConnectionError, type FailedRequest } from './errors.ts'

interface NetworkError extends Error {
  code?: string
  reason?: string
}

type Explanation = [why: string, next: string]

/** What is known about a request that got no answer. */
export interface Unanswered {
  request: FailedRequest
  connection: Connection
  credential: Credential
  now: number
}

/** Why the connection failed, in the words of the person who has to mend it. */
export const explainNetworkError = (about: Unanswered, error: unknown): ConnectionError => {
  const cause = error as NetworkError
  const code = cause.code ?? 'UNKNOWN'
  const [why, next] = explanation(code, cause, about)
  return new ConnectionError(about.request, { code, why, next, notSent: neverSent.has(code), cause })
}

export const explainTimeout = (request: FailedRequest, timeoutMs: number): ConnectionError =>
  new ConnectionError(request, {
    code: 'REQUEST_TIMEOUT',
    why: `no answer within ${timeoutMs / 1000} s`,
    next: 'the API server is down, overloaded or cut off: look at its health, and at what stands between',
  })

// These happen before the first byte of a request leaves.
const neverSent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'PROXY_REFUSED'])

const explanation = (code: string, error: NetworkError, about: Unanswered): Explanation => {
  if (code === 'ECONNREFUSED')
    return ['nothing accepts connections there', 'check that the API server runs and that the address is right']
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return ['the host name cannot be resolved', 'check the server address in the kubeconfig, and DNS']
  if (code === 'EHOSTUNREACH' || code === 'ENETUNREACH' || code === 'ETIMEDOUT')
    return [`the host cannot be reached (${code})`, 'check routes, firewalls and the server address']
  if (code === 'PROXY_REFUSED') return [error.message, 'check proxy-url in the kubeconfig, or HTTPS_PROXY and NO_PROXY']
  if (code.startsWith('HPE_'))
    return [`the answer is not HTTP (${code})`, 'check the port, and whether the address should begin with https://']
  if (code === 'ERR_INVALID_CHAR' || code === 'ERR_INVALID_HTTP_TOKEN')
    return ['the token or a name to act as cannot be sent in a header', 'look for line breaks in it']
  return tlsExplanation(code, error, about) ?? cutExplanation(code, about) ?? unknown(code, error)
}

const tlsExplanation = (code: string, error: NetworkError, about: Unanswered): Explanation | undefined => {
  if (code === 'CERT_HAS_EXPIRED') return ["the server's certificate has expired", 'renew it, and check the clock here']
  if (code === 'CERT_NOT_YET_VALID')
    return ["the server's certificate is not valid yet", 'check the clocks on both sides']
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return [
      `the server's certificate is for another name (${error.reason ?? error.message})`,
      'use a name that it holds, or set tls-server-name in the kubeconfig',
    ]
  if (/^(UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED|ERR_TLS|CERT_)/.test(code))
    return [
      `the server's certificate is not trusted (${code})`,
      "check that certificate-authority in the kubeconfig is this cluster's CA",
    ]
  if (code.startsWith('ERR_OSSL'))
    return [
      `the CA, the client certificate or its key cannot be used (${code})`,
      `check them in ${about.connection.source}`,
    ]
  if (code === 'EPROTO' || code.startsWith('ERR_SSL'))
    return (
      expiredCertificate(about) ?? [
        `TLS failed (${tlsReason(error)})`,
        'check that the port speaks TLS, and the client certificate',
      ]
    )
  return undefined
}

// OpenSSL: `error:0A00010B:SSL routines:tls_validate_record_header:wrong version number:file:line`
const tlsReason = ({ reason, message }: NetworkError): string =>
  reason ?? /error:\w+:[^:]*:[^:]*:([^:]+)/.exec(message)?.[1] ?? message.trim()

const cutCodes = new Set([
  'ECONNRESET',
  'EPIPE',
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_HTTP2_STREAM_ERROR',
  'ERR_HTTP2_SESSION_ERROR',
])

const cutExplanation = (code: string, about: Unanswered): Explanation | undefined => {
  if (!cutCodes.has(code)) return undefined
  return (
    // A server that checks certificates itself may hang up without a word.
    expiredCertificate(about) ?? [
      'the connection was cut',
      'if it goes on, look at the API server and at what stands between',
    ]
  )
}

const unknown = (code: string, error: NetworkError): Explanation => [
  error.message || code,
  'check the server address and the network',
]

const expiredCertificate = ({ credential, connection, now }: Unanswered): Explanation | undefined => {
  const expired = expiredAt(credential, now)
  return expired === undefined
    ? undefined
    : [`the client certificate of ${connection.source} expired at ${expired}`, 'renew it or log in again']
}

/** What to do about a 401, from what is known of the credential that was used. */
export const explainUnauthorized = (connection: Connection, credential: Credential, now: number): string => {
  const where = `the credentials of ${connection.source} were refused`
  if (credential.token) {
    const expired = tokenExpiredAt(credential.token, now)
    if (expired) return `${where}: the token expired at ${expired}; get a new one`
    return `${where}: the token is expired, revoked or from another cluster; get a new one`
  }
  if (credential.basic) return `${where}: Kubernetes no longer accepts passwords; use a token or a certificate`
  if (credential.cert) {
    const expired = expiredAt(credential, now)
    if (expired) return `${where}: the client certificate expired at ${expired}; renew it or log in again`
    return `${where}: is the client certificate from this cluster's CA?`
  }
  return `${connection.source} has no credentials: add a token, a client certificate or an exec plug-in`
}

const expiredAt = ({ cert }: Credential, now: number): string | undefined => {
  try {
    return cert && pastOf(new X509Certificate(cert).validToDate, now)
  } catch {
    return undefined // not a certificate: another explanation will do
  }
}

// Service account and OIDC tokens are JWTs, whose end anyone can read.
const tokenExpiredAt = (token: string, now: number): string | undefined => {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { exp?: unknown }
    return typeof exp === 'number' ? pastOf(new Date(exp * 1000), now) : undefined
  } catch {
    return undefined
  }
}

const pastOf = (date: Date, now: number): string | undefined => (date.getTime() <= now ? date.toISOString() : undefined)
