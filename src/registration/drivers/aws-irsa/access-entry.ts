import { failedFor, pathOf, type AwsClient, type Credentials, type EksCluster } from '../../../aws/index.ts'
import { unlessMissing } from './iam.ts'
import type { Access, Mapping } from './wanted.ts'

interface AccessEntry {
  accessEntryArn?: string
  username?: string
  kubernetesGroups?: string[]
  tags?: Record<string, string>
}

type Tags = Readonly<Record<string, string>>

/** Access entries of the hub, as one caller. */
export interface AccessEntries {
  /** How the hub maps roles; undefined where we may not know. */
  mode(): Promise<Access | undefined>
  set(mapping: Mapping, tags: Tags, options: { expected: boolean }): Promise<void>
  remove(roleArn: string): Promise<void>
}

export const accessEntriesOf = (
  aws: AwsClient,
  hub: EksCluster,
  credentials: Credentials,
  signal: AbortSignal,
): AccessEntries => {
  const send = <T>(operation: string, method: string, path: string, body?: unknown): Promise<T> =>
    aws.json<T>({ service: 'eks', region: hub.region, credentials, signal, operation, method, path, body })
  const call = <T>(operation: string, method: string, segments: string[], body?: unknown): Promise<T> =>
    send<T>(operation, method, pathOf('clusters', hub.name, ...segments), body)
  const entry = (roleArn: string): string[] => ['access-entries', roleArn]
  const repair = async ({ roleArn, username, groups }: Mapping, tags: Tags): Promise<void> => {
    const { accessEntry: has } = await call<{ accessEntry: AccessEntry }>('DescribeAccessEntry', 'GET', entry(roleArn))
    const same = has.username === username && JSON.stringify(has.kubernetesGroups) === JSON.stringify(groups)
    if (!same) await call('UpdateAccessEntry', 'POST', entry(roleArn), { username, kubernetesGroups: groups })
    const lacking = Object.entries(tags).filter(([key, value]) => has.tags?.[key] !== value)
    if (lacking.length > 0 && has.accessEntryArn)
      await send('TagResource', 'POST', pathOf('tags', has.accessEntryArn), { tags: Object.fromEntries(lacking) })
  }
  return {
    mode: async () => {
      try {
        const { cluster } = await call<{ cluster: { accessConfig?: { authenticationMode?: string } } }>(
          'DescribeCluster',
          'GET',
          [],
        )
        // A cluster from before access entries says nothing, and is of the old kind.
        return cluster.accessConfig?.authenticationMode?.startsWith('API') ? 'access-entry' : 'aws-auth'
      } catch (error) {
        // Not ours to know, or a hub that is not on EKS and runs the authenticator itself.
        if (failedFor(error, 'AccessDenied', 'NotFound')) return undefined
        throw error
      }
    },
    set: async (mapping, tags, { expected }) => {
      if (expected && (await unlessMissing(repair(mapping, tags).then(() => true)))) return
      const { roleArn: principalArn, username, groups: kubernetesGroups } = mapping
      const more = Object.keys(tags).length ? { tags } : {}
      try {
        await call('CreateAccessEntry', 'POST', ['access-entries'], {
          principalArn,
          username,
          kubernetesGroups,
          ...more,
        })
      } catch (error) {
        if (!failedFor(error, 'AlreadyExists')) throw error
        await repair(mapping, tags)
      }
    },
    remove: async (roleArn) => {
      await unlessMissing(call('DeleteAccessEntry', 'DELETE', entry(roleArn)))
    },
  }
}
