import { randomUUID } from 'node:crypto'
import { chmod, rename, rm, writeFile } from 'node:fs/promises'
import type { ExecConfig, KubeconfigDocument, KubeconfigUser } from './kubeconfig-schema.ts'

/** How the user of a written kubeconfig proves who it is. Paths may be relative to the kubeconfig itself. */
export type KubeconfigIdentity =
  | { token: string }
  | { tokenFile: string }
  | { cert: string; key: string }
  | { certFile: string; keyFile: string }
  | { exec: ExecConfig }

/** One cluster, one user and the context that joins them. */
export interface KubeconfigParts {
  /** The name of the cluster entry; context and user take it too unless they are named. */
  cluster: string
  context?: string | undefined
  userName?: string | undefined
  server: string
  /** PEM; absent: the system's roots. */
  ca?: string | undefined
  tlsServerName?: string | undefined
  proxyUrl?: string | undefined
  namespace?: string | undefined
  user: KubeconfigIdentity
}

/** A kubeconfig as YAML that kubectl and every client library reads. Equal parts give equal text. */
export const kubeconfigText = async (parts: KubeconfigParts): Promise<string> => {
  const { context = parts.cluster, userName = parts.cluster } = parts
  const document: KubeconfigDocument = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: parts.cluster,
        cluster: {
          server: parts.server,
          ...(parts.ca === undefined ? {} : { 'certificate-authority-data': base64(parts.ca) }),
          ...(parts.tlsServerName === undefined ? {} : { 'tls-server-name': parts.tlsServerName }),
          ...(parts.proxyUrl === undefined ? {} : { 'proxy-url': parts.proxyUrl }),
        },
      },
    ],
    users: [{ name: userName, user: userOf(parts.user) }],
    contexts: [
      {
        name: context,
        context: {
          cluster: parts.cluster,
          user: userName,
          ...(parts.namespace === undefined ? {} : { namespace: parts.namespace }),
        },
      },
    ],
    'current-context': context,
  }
  const { stringify } = await import('yaml')
  // kubectl reads YAML 1.1, where an unquoted `y` or `on` is not text. Long base64 must stay on one line for grep and diff.
  return stringify(document, { compat: 'yaml-1.1', lineWidth: 0, aliasDuplicateObjects: false })
}

/** Puts the text into a file that only its owner can read, all at once: a reader sees the old file or the new one. */
export const writeKubeconfig = async (file: string, text: string): Promise<void> => {
  const draft = `${file}.${randomUUID()}`
  try {
    await writeFile(draft, text, { mode: 0o600, flag: 'wx' })
    await chmod(draft, 0o600) // whatever the umask says
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

const userOf = (user: KubeconfigIdentity): KubeconfigUser => {
  if ('cert' in user) return { 'client-certificate-data': base64(user.cert), 'client-key-data': base64(user.key) }
  if ('certFile' in user) return { 'client-certificate': user.certFile, 'client-key': user.keyFile }
  // kubectl refuses exec of version v1 without interactiveMode
  if ('exec' in user) return { exec: { interactiveMode: 'Never', ...user.exec } }
  return user
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')
