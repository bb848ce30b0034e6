import { X509Certificate } from 'node:crypto'
import type { Connection, Credential } from './connection.ts'
import { ConnectionError, type FailedRequest } from './errors.ts'

interface NetworkError extends Error {
  code?: string
  reason?: string
}

/** Why the connection failed, in the words of the person who has to mend it. */
export const explainNetworkError = (request: FailedRequest, connection: Connection, error: unknown): ConnectionError => {
  const cause = error as NetworkError
  const code = cause.code ?? 'UNKNOWN'
  const [why, next] = explanation(code, cause, connection)
  return new ConnectionError(request, { code, why, next, notSent: neverSent.has(code), cause })
}

// These happen before the first byte of a request leaves.
const neverSent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'PROXY_REFUSED'])

const explanation = (code: string, error: NetworkError, connection: Connection): [why: string, next: string] => {
  const via = connection.proxyUrl ? ` through the proxy ${withoutPassword(connection.proxyUrl)}` : ''
  if (code === 'ECONNREFUSED')
    return [`nothing accepts connections there${via}`, 'check that the API server runs and that the address is right']
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return [`the host name cannot be resolved${via}`, 'check the server address in the kubeconfig, and DNS']
  if (code === 'EHOSTUNREACH' || code === 'ENETUNREACH' || code === 'ETIMEDOUT')
    return [`the host cannot be reached${via} (${code})`, 'check routes, firewalls and the server address']
  if (code === 'PROXY_REFUSED') return [error.message, 'check proxy-url in the kubeconfig, or HTTPS_PROXY and NO_PROXY']
  if (code === 'REQUEST_TIMEOUT') return [error.message, 'the API server is overloaded or hangs: look at its health and logs']
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
  if (code === 'EPROTO' || code.startsWith('ERR_SSL'))
    return [`TLS failed (${error.reason ?? error.message})`, 'check that the port speaks TLS, and the client certificate']
  if (code === 'ECONNRESET' || code === 'EPIPE' || code === 'ERR_STREAM_PREMATURE_CLOSE' || code === 'ERR_HTTP2_STREAM_ERROR')
    return ['the connection was cut', 'if it goes on, look at the API server and at what stands between']
  return [error.message || code, 'check the server address and the network']
}

/** A proxy address fit for a message. */
const withoutPassword = (address: string): string => address.replace(/\/\/[^@/]*@/, '//')

/** What to do about a 401, from what is known of the credential that was used. */
export const explainUnauthorized = (connection: Connection, credential: Credential, now: number): string => {
  const where = `the credentials of ${connection.source} were refused`
  if (credential.cert) {
    const expires = new X509Certificate(credential.cert).validToDate
    if (expires.getTime() <= now)
      return `${where}: the client certificate expired at ${expires.toISOString()}; renew it or log in again`
    return `${where}: is the client certificate from this cluster's CA?`
  }
  if (credential.token) return `${where}: the token is expired, revoked or from another cluster; get a new one`
  if (credential.basic) return `${where}: Kubernetes no longer accepts passwords; use a token or a certificate`
  return `${connection.source} has no credentials: add a token, a client certificate or an exec plug-in`
}
