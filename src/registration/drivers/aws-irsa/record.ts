import { label } from '../../../api/index.ts'
import { ConfigMap, isAlreadyExists, isNotFound, type Api } from '../../../kube/index.ts'
import type { Access, Wanted } from './wanted.ts'

/**
 * What a cluster was given is written down before it is given, in a ConfigMap of the hub's own namespace: no agent can read or
 * edit that. It is named after the role, so that no two clusters can ever be given the same one.
 */
export interface GrantRecord {
  readonly object: ConfigMap
  readonly roleName: string
  readonly cluster: string
  readonly clusterUid: string
  readonly arn: string
  readonly roleArn: string
  /** Where there may be a mapping. */
  readonly access: readonly Access[]
  /** The digest of what is in place; empty while it is made, `going` while it is taken away. */
  readonly granted: string
  /** When AWS was last seen to have all of it, in milliseconds. */
  readonly verifiedAt: number
}

const marker = 'registration.lanyard.io/aws-irsa'
/** Selects the records. */
export const recordSelector = `${marker}=grant`

/** In place of a digest, while everything is taken away. */
export const going = 'going'
export const isGoing = ({ granted }: GrantRecord): boolean => granted === going

export const recordIn = (object: ConfigMap): GrantRecord => {
  const { data = {}, metadata } = object
  return {
    object,
    roleName: metadata.name ?? '',
    cluster: metadata.labels?.[label.clusterName] ?? '',
    clusterUid: data['cluster-uid'] ?? '',
    arn: data['managed-cluster-arn'] ?? '',
    roleArn: data['role-arn'] ?? '',
    access: (data['access'] ?? '').split(',').filter((one): one is Access => one !== ''),
    granted: data['granted'] ?? '',
    verifiedAt: Date.parse(data['verified'] ?? '') || 0,
  }
}

/** Records in one namespace of the hub. */
export interface Records {
  of(cluster: string, signal: AbortSignal): Promise<GrantRecord[]>
  find(roleName: string, signal: AbortSignal): Promise<GrantRecord | undefined>
  /** Writes one for a role that has none; the one that is there, where somebody was quicker. */
  create(wanted: Wanted, about: RecordChange, signal: AbortSignal): Promise<GrantRecord>
  /** Fails with a conflict where somebody else has written it since. */
  update(record: GrantRecord, about: Partial<RecordChange>, signal: AbortSignal): Promise<GrantRecord>
  remove(record: GrantRecord, signal: AbortSignal): Promise<void>
}

export interface RecordChange {
  clusterUid: string
  access: readonly Access[]
  granted: string
  verifiedAt: number
}

const dataOf = ({ clusterUid, access, granted, verifiedAt }: Partial<RecordChange>): Record<string, string> => ({
  ...(clusterUid !== undefined && { 'cluster-uid': clusterUid }),
  ...(access !== undefined && { access: access.join() }),
  ...(granted !== undefined && { granted }),
  ...(verifiedAt !== undefined && { verified: verifiedAt ? new Date(verifiedAt).toISOString() : '' }),
})

export const recordsIn = (client: Api, namespace: string): Records => {
  const objects = () => client.of(ConfigMap, namespace)
  const fieldManager = 'lanyard'
  return {
    of: async (cluster, signal) => {
      const labelSelector = `${recordSelector},${label.clusterName}=${cluster}`
      return (await objects().list({ labelSelector, signal })).items.map(recordIn)
    },
    find: async (roleName, signal) => {
      const found = await objects().find(roleName, { signal })
      return found && recordIn(found)
    },
    create: async ({ cluster, arn, roleArn, roleName }, about, signal) => {
      const labels = { [marker]: 'grant', [label.clusterName]: cluster }
      const data = { 'managed-cluster-arn': arn, 'role-arn': roleArn, ...dataOf(about) }
      try {
        const object = { metadata: { name: roleName, namespace, labels }, data }
        return recordIn(await objects().create(object, { fieldManager, signal }))
      } catch (error) {
        if (!isAlreadyExists(error)) throw error
        return recordIn(await objects().get(roleName, { signal }))
      }
    },
    update: async ({ object }, about, signal) => {
      const data = { ...object.data, ...dataOf(about) }
      return recordIn(await objects().update({ ...object, data }, { fieldManager, signal }))
    },
    remove: async ({ object: { metadata } }, signal) => {
      const preconditions = { uid: metadata.uid }
      await objects()
        .delete(metadata.name!, { preconditions, signal })
        .catch((error: unknown) => {
          if (!isNotFound(error)) throw error
        })
    },
  }
}
