import type { ClusterPermission, ClusterSetPermission } from '../../api/index.ts'
import type { Requester } from '../../kube/index.ts'
import { timestamp, type ConditionState } from '../../runtime/index.ts'
import { annotation, Authorized } from '../contract.ts'
import { isForSet, specOf } from '../grants.ts'
import { demandOf, fingerprint, lackOf, type Target } from './authority.ts'
import { rbacResource, type Hub } from './hub.ts'
import type { CopiedRole } from './hub-roles.ts'
import { approvedPrint, approverOf, authorOf } from './stamps.ts'

type Permission = ClusterPermission | ClusterSetPermission
type Authorization = NonNullable<NonNullable<ClusterPermission['status']>['authorization']>

/** Under whose authority a permission is delivered, or why it is not. */
export interface Decision {
  readonly authorization: Authorization
  readonly granted: boolean
  readonly state: ConditionState
}

/** What RBAC on the hub is asked about a permission. */
export const targetOf = (permission: Permission): Target => {
  const { namespace, name = '' } = permission.metadata
  return isForSet(permission)
    ? { resource: 'clustersetpermissions', name, clusterSet: permission.spec.clusterSet }
    : { resource: 'clusterpermissions', namespace, name }
}

export const printOf = (permission: Permission, copies: readonly CopiedRole[]): string =>
  fingerprint(specOf(permission), copies, isForSet(permission) ? permission.spec : undefined)

/**
 * Decides anew only when the permission gives something else than before: that its author loses a right later takes nothing
 * back, as with any RoleBinding. A role of the hub that changes makes it something else, too.
 */
export const authorize = async (
  hub: Hub,
  permission: Permission,
  copies: readonly CopiedRole[],
  signal: AbortSignal,
): Promise<Decision> => {
  const wanted = printOf(permission, copies)
  const present = permission.status?.authorization
  if (present?.granted === wanted) return kept(present, wanted)
  const grant = (how: NonNullable<Authorization['how']>, by: string): Decision => {
    const authorization = { wanted, granted: wanted, how, by, time: timestamp(hub.clock.now()) }
    return { authorization, granted: true, state: stateOf(authorization) }
  }
  const wait = (why: string): Decision => ({
    authorization: { wanted },
    granted: false,
    state: Authorized.waits(`${why}; to approve it: ${approveCommand(permission, wanted)}`),
  })
  if (!hub.admission) return grant('Unchecked', '')
  const approver = approverOf(permission)
  if (approver && approvedPrint(permission) === wanted) return grant('Approval', approver.username)
  const author = authorOf(permission)
  if (!author) return wait('nobody knows who wrote it: it is older than the admission of this hub')
  const lacks = await lacksOf(hub, author, permission, copies, signal)
  if (lacks.length === 0) return grant('Author', author.username)
  return wait(`user ${JSON.stringify(author.username)}, who wrote it, may not ${lacks.join(', ')}`)
}

/** What somebody lacks to give all that a permission gives, in words. */
export const lacksOf = (
  hub: Hub,
  who: Requester,
  permission: Permission,
  copies: readonly CopiedRole[],
  signal: AbortSignal,
): Promise<readonly string[]> => {
  const target = targetOf(permission)
  const demand = demandOf(target.name, specOf(permission), copies)
  return hub.verdicts.lacks({ who: requesterOf(who), target, print: printOf(permission, copies) }, () =>
    lackOf(hub.client, who, target, demand, signal),
  )
}

// In one order of keys, as the stamp has them.
const requesterOf = ({ username, uid, groups, extra }: Requester): Requester => ({
  username,
  ...(uid && { uid }),
  ...(groups && { groups }),
  ...(extra && { extra }),
})

const kept = (present: Authorization, wanted: string): Decision => ({
  authorization: { ...present, wanted },
  granted: true,
  state: stateOf(present),
})

const stateOf = ({ how, by }: Authorization): ConditionState => {
  if (how === 'Unchecked') return Authorized.unchecked()
  return how === 'Approval'
    ? Authorized.approved(`Approved by ${by}`)
    : Authorized.author(`Written by ${by}, who may give these rights`)
}

/** What an administrator types. */
export const approveCommand = (permission: Permission, print: string): string => {
  const { namespace, name } = permission.metadata
  const what = `${rbacResource[isForSet(permission) ? 'ClusterSetPermission' : 'ClusterPermission']} ${name}`
  return `kubectl${namespace ? ` -n ${namespace}` : ''} annotate --overwrite ${what} ${annotation.approve}=${print}`
}
