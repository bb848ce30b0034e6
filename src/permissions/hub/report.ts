import { isDeepStrictEqual } from 'node:util'
import { ClusterPermission, type ManifestWork } from '../../api/index.ts'
import { setConditions, type ConditionState } from '../../runtime/index.ts'
import { ClusterRolesExist, RolesExist } from '../contract.ts'
import type { Decision } from './authorization.ts'
import type { Hub } from './hub.ts'
import { appliedState, existenceStates, resourceStatusOf } from './status.ts'

/** Writes the status of a permission: nothing is sent when it is the same. */
export const report = async (
  hub: Hub,
  permission: ClusterPermission,
  of: { states: readonly ConditionState[]; decision: Decision; work: ManifestWork | undefined },
  signal: AbortSignal,
): Promise<void> => {
  const { name, namespace, uid, resourceVersion, generation } = permission.metadata
  const existence = existenceStates(of.work, permission.spec?.validate ?? false)
  // Asked for no more, they would speak of the past.
  const isOver = (type: string): boolean =>
    [RolesExist.type, ClusterRolesExist.type].includes(type) && !existence.some((state) => state.type === type)
  const present = permission.status?.conditions?.filter(({ type }) => !isOver(type))
  const states = [...of.states, appliedState(of.work), ...existence]
  const status: NonNullable<ClusterPermission['status']> = {
    conditions: setConditions(present, states, { now: hub.clock.now(), generation }),
    authorization: of.decision.authorization,
    resourceStatus: resourceStatusOf(of.work),
  }
  if (isDeepStrictEqual(JSON.parse(JSON.stringify(status)), permission.status)) return
  const merge = {
    metadata: { uid, resourceVersion },
    status: {
      ...status,
      authorization: { ...noGrant, ...status.authorization },
      resourceStatus: status.resourceStatus ? { ...noLists, ...status.resourceStatus } : null,
    },
  }
  await hub.client
    .of(ClusterPermission, namespace)
    .patch(name!, { merge }, { subresource: 'status', fieldManager: 'lanyard-permissions', signal })
}

/** What is absent has to be said: a merge keeps what it does not mention. */
export const noGrant = { granted: null, by: null, how: null, time: null }
const noLists = { clusterRoles: null, clusterRoleBindings: null, roles: null, roleBindings: null }
