import { ConfigMap, isForbidden, isNotFound, type Client } from '../../kube/index.ts'
import type { Access } from '../../registration/drivers/index.ts'
import { CliError } from '../errors.ts'

const awsAuth = { namespace: 'kube-system', name: 'aws-auth' } as const

/**
 * What whoever lets a cluster in lacks on the hub, all of it at once. It is tried without effect before anything is made:
 * a role in AWS that nobody may write down would be lost.
 */
export const lackingRights = async (
  client: Client,
  where: { namespace: string; roleName: string; access: Access; signal: AbortSignal },
): Promise<string[]> => {
  const { namespace, roleName, access, signal } = where
  const dry = { dryRun: true, fieldManager: 'lanyard', signal }
  const records = client.of(ConfigMap, namespace)
  const record = { metadata: { name: roleName, namespace } }
  const here = `configmaps in namespace ${namespace}`
  const tried = [
    mayDo(`list ${here}`, () => records.list({ limit: 1, signal })),
    mayDo(`create ${here}`, () => records.create(record, dry).catch(unlessMissing(namespace))),
    mayDo(`update ${here}`, () => records.update(record, dry)),
    ...(access === 'aws-auth' ? [lackingOnMap(client, dry)] : []),
  ]
  return (await Promise.all(tried)).flat()
}

/** An object that cannot be made because its namespace is not there. */
const unlessMissing =
  (namespace: string) =>
  (error: unknown): never => {
    if (!isNotFound(error)) throw error
    throw new CliError(`this hub has no namespace ${namespace}`, {
      next: 'is it set up? clusteradm init makes it one; where no ClusterManager runs the hub, say where: --hub-namespace',
      cause: error,
    })
  }

const lackingOnMap = async (client: Client, dry: { dryRun: boolean; signal: AbortSignal }): Promise<string[]> => {
  const maps = client.of(ConfigMap, awsAuth.namespace)
  const map = `configmap ${awsAuth.namespace}/${awsAuth.name}`
  let present: ConfigMap | undefined
  const unread = await mayDo(`get ${map}`, async () => {
    present = await maps.find(awsAuth.name, { signal: dry.signal })
  })
  if (unread.length > 0) return unread
  const found = present
  return found
    ? mayDo(`update ${map}`, () => maps.update(found, dry))
    : mayDo(`create ${map}`, () => maps.create({ metadata: awsAuth }, dry))
}

/** Only whether it is allowed: that something is there already, or not there, is another matter. */
const mayDo = async (what: string, run: () => Promise<unknown>): Promise<string[]> => {
  try {
    await run()
    return []
  } catch (error) {
    if (isForbidden(error)) return [what]
    const status = (error as { status?: number }).status ?? 0
    if (status >= 400 && status < 500) return []
    throw error
  }
}
