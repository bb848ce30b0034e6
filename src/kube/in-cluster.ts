import { access, readFile } from 'node:fs/promises'
import path from 'node:path'
import type { Connection } from './connection.ts'
import { credentialFromParts } from './credential-files.ts'
import { KubeconfigError } from './kubeconfig-error.ts'
import type { Environment } from './kubeconfig.ts'
import { proxyFor } from './proxy.ts'

export interface InClusterOptions {
  env: Environment
  /** Where the service account's token, CA and namespace are mounted; KUBERNETES_SERVICE_ACCOUNT_FOLDER can tell as well. */
  folder?: string | undefined
  now?: (() => number) | undefined
  onWarning?: ((warning: KubeconfigError) => void) | undefined
}

const usualFolder = '/var/run/secrets/kubernetes.io/serviceaccount'

/** The API server of the cluster this pod runs in, as the pod's service account. */
export const inCluster = async (options: InClusterOptions): Promise<Connection> => {
  const { env } = options
  // For processes that share a file system, each with the mounts of a pod of its own (testkit/runner).
  const folder = options.folder ?? env['KUBERNETES_SERVICE_ACCOUNT_FOLDER'] ?? usualFolder
  const source = 'in-cluster'
  const host = env['KUBERNETES_SERVICE_HOST']
  const port = env['KUBERNETES_SERVICE_PORT']
  if (!host || !port) {
    const problem = 'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, so this is not a pod of a cluster'
    throw new KubeconfigError({ source, problem, next: 'give a kubeconfig, or run in a pod' })
  }
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`
  if (!URL.canParse(server)) {
    const problem = 'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT do not make an address'
    throw new KubeconfigError({ source, problem, next: 'they are set by the kubelet: remove what overrides them' })
  }
  const token = path.join(folder, 'token')
  const ca = path.join(folder, 'ca.crt')
  try {
    await access(token)
  } catch (cause) {
    const next = 'let the pod mount its token (automountServiceAccountToken), or give a kubeconfig'
    throw new KubeconfigError({ source, problem: `the service account token ${token} cannot be read`, next, cause })
  }
  return {
    source,
    server,
    namespace: await textOf(path.join(folder, 'namespace')),
    proxyUrl: proxyFor(server, env),
    credentials: credentialFromParts(
      // a cluster whose API server has a publicly trusted certificate may leave ca.crt out
      { token: { file: token }, ca: (await exists(ca)) ? { file: ca } : undefined },
      { source, now: options.now, onWarning: options.onWarning },
    ),
  }
}

const exists = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== 'ENOENT',
  )

const textOf = async (file: string): Promise<string | undefined> => {
  try {
    return (await readFile(file, 'utf8')).trim() || undefined
  } catch {
    return undefined
  }
}
