import type { Credential } from './connection.ts'
import { tokenProblem } from './credential-files.ts'
import { pairProblem } from './key-pair.ts'
import { quoted } from './kubeconfig-error.ts'

/** The versions that clients still speak; v1alpha1 went away with Kubernetes 1.24. */
export const execApiVersions: readonly string[] = [
  'client.authentication.k8s.io/v1',
  'client.authentication.k8s.io/v1beta1',
]

/** The cluster's part of `KUBERNETES_EXEC_INFO`, for plug-ins that ask for it with `provideClusterInfo`. */
export interface ExecCluster {
  server: string
  'tls-server-name'?: string | undefined
  'insecure-skip-tls-verify'?: boolean | undefined
  /** Base64. */
  'certificate-authority-data'?: string | undefined
  'proxy-url'?: string | undefined
  'disable-compression'?: boolean | undefined
  /** What the kubeconfig's cluster holds for plug-ins. */
  config?: unknown
}

/** What a plug-in printed, understood. */
export interface PrintedCredential {
  credential: Credential
  expiresAt?: number | undefined
}

/** The JSON that a plug-in finds in `KUBERNETES_EXEC_INFO`. */
export const execInfo = (apiVersion: string, interactive: boolean, cluster: ExecCluster | undefined): string =>
  JSON.stringify({ kind: 'ExecCredential', apiVersion, spec: { ...(cluster ? { cluster } : {}), interactive } })

/** Reads an ExecCredential. What was printed may hold secrets, so problems name fields and never values. */
export const readExecCredential = (stdout: string, apiVersion: string): PrintedCredential | { problem: string } => {
  const printed = parsed(stdout)
  if (!printed) return { problem: 'it printed something that is not a JSON object' }
  if (printed['kind'] !== 'ExecCredential') return { problem: 'it printed JSON whose kind is not ExecCredential' }
  if (printed['apiVersion'] !== apiVersion) {
    return {
      problem: `it answers with apiVersion ${shown(printed['apiVersion'])}, but ${quoted(apiVersion)} is configured`,
    }
  }
  const status = printed['status']
  if (!isMapping(status)) return { problem: 'it printed an ExecCredential without a status' }

  const { token = '', clientCertificateData: cert = '', clientKeyData: key = '', expirationTimestamp: expires } = status
  if (typeof token !== 'string' || typeof cert !== 'string' || typeof key !== 'string') {
    return { problem: 'token, clientCertificateData and clientKeyData in its status must be text' }
  }
  if (token === '' && cert === '' && key === '')
    return { problem: 'its status holds neither a token nor a certificate' }
  if ((cert === '') !== (key === '')) return { problem: 'its status holds a certificate or a key, but not both' }
  const problem = (token && tokenProblem(token)) || (cert && pairProblem(cert, key))
  if (problem) return { problem: `its status cannot be used: ${problem}` }
  const expiresAt = timeOf(expires)
  if (Number.isNaN(expiresAt)) return { problem: 'expirationTimestamp in its status is not an RFC 3339 time' }
  return { credential: { ...(token ? { token } : {}), ...(cert ? { cert, key } : {}) }, expiresAt }
}

const timeOf = (value: unknown): number | undefined => {
  if (value === undefined || value === null) return undefined
  return typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i.test(value)
    ? Date.parse(value)
    : Number.NaN
}

const parsed = (text: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return isMapping(value) ? value : undefined
  } catch {
    return undefined // the parser's message quotes the text
  }
}

const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const shown = (value: unknown): string =>
  typeof value === 'string' && /^[\w./-]{1,80}$/.test(value) ? quoted(value) : 'of another form'
