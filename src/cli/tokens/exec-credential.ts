import { UsageError } from '../../main/flags.ts'
import { CliError } from '../errors.ts'
import type { ReadToken } from './cache.ts'

const versions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'] as const

/** What a client says in KUBERNETES_EXEC_INFO. */
export interface ExecInfo {
  apiVersion: string
  /** Of the managed cluster, where the client provides it: as ClusterProfiles have it. */
  clusterName: string | undefined
}

export const readExecInfo = (text: string | undefined): ExecInfo => {
  if (!text) return { apiVersion: versions[0], clusterName: undefined }
  let info: { apiVersion?: unknown; spec?: { cluster?: { config?: { clusterName?: unknown } | null } | null } }
  try {
    info = JSON.parse(text) as typeof info
  } catch {
    throw new CliError('KUBERNETES_EXEC_INFO is not JSON', { next: 'leave it to kubectl' })
  }
  const apiVersion = versions.find((known) => known === info.apiVersion)
  if (!apiVersion)
    throw new UsageError(
      `the kubeconfig asks for ${JSON.stringify(info.apiVersion)}, which this plug-in does not speak: write apiVersion: ${versions[0]}`,
    )
  const { clusterName } = info.spec?.cluster?.config ?? {}
  return { apiVersion, clusterName: typeof clusterName === 'string' && clusterName ? clusterName : undefined }
}

/** What an exec plug-in prints. */
export const execCredential = ({ token, expiresAt }: ReadToken, apiVersion: string): object => ({
  kind: 'ExecCredential',
  apiVersion,
  spec: { interactive: false },
  status: {
    ...(expiresAt !== undefined && { expirationTimestamp: `${new Date(expiresAt).toISOString().slice(0, 19)}Z` }),
    token,
  },
})
