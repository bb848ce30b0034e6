import { isDeepStrictEqual } from 'node:util'
import { group, type ClusterPermission, type ClusterSetPermission } from '../../api/index.ts'
import { mayAccess, resource as kind, type KubeObject } from '../../kube/index.ts'
import type { Validate } from '../../runtime/webhook/index.ts'
import { verb } from '../contract.ts'
import { targetOf } from './authorization.ts'
import type { Hub } from './hub.ts'

/** What is granted is written by the hub; whoever else writes it must be somebody who may approve. */
export const validateStatus = (hub: Hub): Validate<ClusterPermission | ClusterSetPermission> => {
  // Nearly all of these are the hub's own writes: it knows itself without asking about each.
  let self: string | undefined
  return async ({ object: permission, oldObject: old, userInfo: user }, { signal }) => {
    if (!permission || isDeepStrictEqual(permission.status?.authorization, old?.status?.authorization)) return undefined
    self ??= await ownName(hub, signal)
    if (self === user.username) return undefined
    const { resource, namespace, name } = targetOf(permission)
    const access = { verb: verb.approve, group: group.rbac, resource, namespace, name }
    if (await mayAccess(hub.client, user, access, { signal })) return undefined
    const message = `user ${JSON.stringify(user.username)} may not write it: that needs the verb ${verb.approve} on ${resource} of ${group.rbac}`
    return { reason: 'Forbidden', field: 'status.authorization', message }
  }
}

const SelfSubjectReview = kind<KubeObject & { status?: { userInfo?: { username?: string } } }>({
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectReview',
  plural: 'selfsubjectreviews',
  namespaced: false,
})

/** As whom the API server knows this process: everybody may ask that. */
const ownName = async ({ client }: Hub, signal: AbortSignal): Promise<string | undefined> =>
  (await client.of(SelfSubjectReview).create({ metadata: {} }, { signal })).status?.userInfo?.username
