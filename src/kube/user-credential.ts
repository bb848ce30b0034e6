import path from 'node:path'
import type { Credential, CredentialSource } from './connection.ts'
import { credentialFromParts } from './credential-files.ts'
import type { CredentialParts, Material } from './credential-files.ts'
import type { ExecCluster } from './exec-credential.ts'
import { credentialFromExec } from './exec-plugin.ts'
import { KubeconfigError, quoted } from './kubeconfig-error.ts'
import type { ExecConfig, KubeconfigCluster, KubeconfigUser } from './kubeconfig-schema.ts'
import type { Entry, Environment } from './kubeconfig.ts'

export interface UserCredentialOptions {
  /** For the proxy settings; exec plug-ins inherit it. */
  env?: Environment | undefined
  /** Whether an exec plug-in can ask a person on our stdin. */
  terminal?: boolean | undefined
  now?: (() => number) | undefined
  execTimeoutMs?: number | undefined
  /** Told when a credential file can no longer be used and what was read from it before stays in use. */
  onWarning?: ((warning: KubeconfigError) => void) | undefined
}

/** What a user entry proves itself with, and the CA that the cluster entry names. */
export const credentialOf = (
  cluster: Entry<KubeconfigCluster>,
  user: Entry<KubeconfigUser> | undefined,
  options: UserCredentialOptions,
): CredentialSource => {
  // As kubectl: nothing secret goes over a connection that anyone can read.
  if (cluster.value.server?.startsWith('http:')) return credentialFromParts({}, { source: cluster.source })

  const parts = { ca: caOf(cluster), ...(user ? partsOf(user) : {}) }
  const source = user?.source ?? cluster.source
  const fixed = credentialFromParts(parts, { source, now: options.now, onWarning: options.onWarning })
  // As kubectl: a plug-in beside another credential is not run.
  if (!user?.value.exec || parts.token || parts.basic || parts.pair) return fixed

  const minted = credentialFromExec({
    exec: execOf(user, user.value.exec),
    cluster: async () => execClusterOf(cluster, (await fixed()).ca),
    source,
    env: options.env ?? {},
    terminal: options.terminal,
    now: options.now,
    timeoutMs: options.execTimeoutMs,
  })
  return joined(fixed, minted)
}

/** Two sources as one. The joined credential stays the same object while both parts do. */
const joined = (a: CredentialSource, b: CredentialSource): CredentialSource => {
  let last: { a: Credential; b: Credential; both: Credential } | undefined
  return async ({ rejected, signal } = {}) => {
    const refused = rejected !== undefined && rejected === last?.both ? last : undefined
    const [fromA, fromB] = await Promise.all([a({ rejected: refused?.a, signal }), b({ rejected: refused?.b, signal })])
    if (last?.a !== fromA || last.b !== fromB) last = { a: fromA, b: fromB, both: { ...fromA, ...fromB } }
    return last.both
  }
}

const caOf = (cluster: Entry<KubeconfigCluster>): Material | undefined => {
  const ca = materialOf(cluster, 'certificate-authority', cluster.value)
  if (ca && cluster.value['insecure-skip-tls-verify']) {
    const problem = 'insecure-skip-tls-verify is true although a certificate-authority is given'
    throw new KubeconfigError({ source: cluster.source, problem, next: 'remove one of the two' })
  }
  return ca
}

const partsOf = (user: Entry<KubeconfigUser>): CredentialParts => {
  const { value, source } = user
  const fail = (problem: string, next: string): KubeconfigError => new KubeconfigError({ source, problem, next })
  const provider = value['auth-provider']
  if (provider) {
    const problem = `its auth-provider ${quoted(provider.name ?? '')} belongs to a mechanism that Kubernetes 1.26 removed`
    throw fail(problem, "use the provider's exec plug-in instead (users[].user.exec)")
  }
  const cert = materialOf(user, 'client-certificate', value)
  const key = materialOf(user, 'client-key', value)
  if (!cert !== !key)
    throw fail(
      `it has ${cert ? 'a client-certificate but no client-key' : 'a client-key but no client-certificate'}`,
      'give both',
    )

  const { token, tokenFile, username, password } = value
  if ((token || tokenFile) && (username || password))
    throw fail('it has both a token and a password', 'remove one of them')
  return {
    ...(cert && key ? { pair: { cert, key } } : {}),
    // As in client-go the file wins, since its token is the one that is kept fresh.
    ...(tokenFile ? { token: { file: resolved(user, 'tokenFile', tokenFile) }, spareToken: token } : {}),
    ...(token && !tokenFile ? { token: { text: token, field: 'token' } } : {}),
    ...(username || password ? { basic: { username: username ?? '', password: password ?? '' } } : {}),
  }
}

type FileField = 'certificate-authority' | 'client-certificate' | 'client-key'

/** `<field>-data` wins over the file. */
const materialOf = <F extends FileField>(
  entry: Entry<unknown>,
  field: F,
  value: { [K in F | `${F}-data`]?: string },
): Material | undefined => {
  const data = value[`${field}-data`]
  const file = value[field]
  if (data) return { text: decoded(entry, `${field}-data`, data), field: `${field}-data` }
  return file ? { file: resolved(entry, field, file) } : undefined
}

const decoded = ({ source }: Entry<unknown>, field: string, data: string): string => {
  const compact = data.replaceAll(/\s/g, '')
  if (/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(compact)) {
    return Buffer.from(compact, 'base64').toString('utf8')
  }
  const next = data.includes('-----BEGIN')
    ? 'encode the PEM text with base64'
    : `write it again, or name a file in ${field.slice(0, -5)}`
  throw new KubeconfigError({ source, problem: `${field} is not base64`, next })
}

const resolved = ({ source, folder }: Entry<unknown>, field: string, file: string): string => {
  if (folder !== undefined) return path.isAbsolute(file) ? file : path.join(folder, file)
  const problem = `${field} names a file, which only a kubeconfig from this machine's disk may do`
  throw new KubeconfigError({ source, problem, next: 'put the content itself into it (…-data, token)' })
}

const execOf = ({ source, folder }: Entry<KubeconfigUser>, exec: ExecConfig): ExecConfig => {
  if (folder === undefined) {
    const problem = "it runs a command (exec), which only a kubeconfig from this machine's disk may do"
    throw new KubeconfigError({ source, problem, next: 'use a token or a client certificate in it' })
  }
  const { command } = exec
  // A bare name is looked up in PATH.
  return command?.includes(path.sep) && !path.isAbsolute(command)
    ? { ...exec, command: path.join(folder, command) }
    : exec
}

const execClusterOf = ({ value }: Entry<KubeconfigCluster>, ca: string | undefined): ExecCluster => ({
  server: value.server ?? '',
  'tls-server-name': value['tls-server-name'],
  'insecure-skip-tls-verify': value['insecure-skip-tls-verify'],
  'certificate-authority-data': ca === undefined ? undefined : Buffer.from(ca).toString('base64'),
  'proxy-url': value['proxy-url'],
  'disable-compression': value['disable-compression'],
  config: value.extensions?.find(({ name }) => name === 'client.authentication.k8s.io/exec')?.extension,
})
