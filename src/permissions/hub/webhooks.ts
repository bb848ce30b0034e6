import { group, subject, type ClusterPermission, type ClusterSetPermission } from '../../api/index.ts'
import { mayAccess } from '../../kube/index.ts'
import {
  configurationsOf,
  guarding,
  mutating,
  validating,
  type Denial,
  type Route,
  type UserInfo,
  type Validate,
  type Warned,
  type Webhook,
  type WebhookConfiguration,
  type WebhookServerAddress,
} from '../../runtime/webhook/index.ts'
import { manifestBytesLimit } from '../../work/contract.ts'
import { annotation, approvalRequested, verb } from '../contract.ts'
import { faultsOf, warningsOf } from '../faults.ts'
import { isForSet, specOf } from '../grants.ts'
import { refusalOf } from './authority.ts'
import { lacksOf, printOf, targetOf } from './authorization.ts'
import type { Hub } from './hub.ts'
import { copiesOf, missingRoles } from './hub-roles.ts'
import { payloadOf } from './payload.ts'
import { validateStatus } from './status-admission.ts'
import { approvedPrint, changesApproval, changesSpec, hasStamps, stamped, wantedStamps } from './stamps.ts'

/** Where the webhooks are on their server. */
export const webhookPath = {
  mutate: '/mutate-rbac-open-cluster-management-io-v1alpha1-permission',
  validate: '/validate-rbac-open-cluster-management-io-v1alpha1-permission',
  validateStatus: '/validate-rbac-open-cluster-management-io-v1alpha1-permission-status',
} as const

type Permission = ClusterPermission | ClusterSetPermission

/** Routes for a webhook server: who may give what to managed clusters. */
export const permissionWebhooks = (hub: Hub): Record<string, Route> => ({
  [webhookPath.mutate]: mutating<Permission>(({ object, oldObject, userInfo }) =>
    object ? stamped(object, oldObject, userInfo) : undefined,
  ),
  [webhookPath.validate]: validating<Permission>(validate(hub)),
  [webhookPath.validateStatus]: validating<Permission>(validateStatus(hub)),
})

const validate =
  (hub: Hub): Validate<Permission> =>
  async (request, { signal }) => {
    const { object: permission, oldObject: old, userInfo: user } = request
    if (!permission || permission.metadata.deletionTimestamp) return undefined
    if (!hasStamps(permission, wantedStamps(permission, old, user)))
      return {
        reason: 'Forbidden',
        message: `${annotation.author} and ${annotation.approver} are written by the hub alone`,
      }
    const edited = changesSpec(permission, old)
    const approved = changesApproval(permission, old)
    if (!edited && !approved) return undefined
    await Promise.all([hub.clusters.synced, hub.clusterRoles.synced, hub.roles.synced])
    const denied =
      agentDenial(permission, user) ??
      (edited ? faultDenial(hub, permission) : undefined) ??
      (approved ? await approvalDenial(hub, permission, user, signal) : undefined)
    if (denied || !edited) return denied
    return rightVerdict(hub, permission, user, signal)
  }

/** A managed cluster never decides what is given on managed clusters. */
const agentDenial = (permission: Permission, { groups = [] }: UserInfo): Denial | undefined =>
  groups.includes(subject.managedClusters) && !groups.includes('system:masters')
    ? { reason: 'Forbidden', message: `agents of managed clusters may not write ${permission.kind ?? 'permissions'}` }
    : undefined

const faultDenial = (hub: Hub, permission: Permission): Denial | undefined => {
  const spec = specOf(permission)
  const at = isForSet(permission) ? 'spec.permission' : 'spec'
  const faults = faultsOf(permission.metadata.name ?? '', spec, at)
  if (faults.length)
    return { reason: 'Invalid', message: faults.map((f) => `${f.field}: ${f.message}`).join('; '), causes: faults }
  const { bytes } = payloadOf({
    kind: 'ClusterPermission',
    metadata: { ...permission.metadata, uid: 'x'.repeat(36) },
    spec,
    copies: copiesOf(spec, hub).copies,
    accountNamespace: () => 'x'.repeat(63),
  })
  return bytes > manifestBytesLimit ? { reason: 'Invalid', field: at, message: tooLarge(bytes) } : undefined
}

/** What to say about a permission that no ManifestWork can hold. */
export const tooLarge = (bytes: number): string =>
  `its roles and bindings take ${bytes} bytes, and ${manifestBytesLimit} are allowed in the one ManifestWork that carries them: split it into several permissions`

/** An approval is for what is there now, by somebody who may approve. */
const approvalDenial = async (
  hub: Hub,
  permission: Permission,
  user: UserInfo,
  signal: AbortSignal,
): Promise<Denial | undefined> => {
  const { resource, namespace, name } = targetOf(permission)
  const field = `metadata.annotations[${annotation.approve}]`
  const access = { verb: verb.approve, group: group.rbac, resource, namespace, name }
  if (!(await mayAccess(hub.client, user, access, { signal })))
    return {
      reason: 'Forbidden',
      field,
      message: `user ${JSON.stringify(user.username)} may not approve: that needs the verb ${verb.approve} on ${resource} of ${group.rbac}, for the name ${name}`,
    }
  const print = printOf(permission, copiesOf(specOf(permission), hub).copies)
  if (approvedPrint(permission) === print) return undefined
  return {
    reason: 'Conflict',
    field,
    message: `what is there now has the fingerprint ${print}: it changed since it was looked at; look again, and approve that`,
  }
}

const rightVerdict = async (
  hub: Hub,
  permission: Permission,
  user: UserInfo,
  signal: AbortSignal,
): Promise<Denial | Warned | undefined> => {
  const spec = specOf(permission)
  const name = permission.metadata.name ?? ''
  const { copies, missing } = copiesOf(spec, hub)
  const lacks = await lacksOf(hub, user, permission, copies, signal)
  const warnings = [
    ...placeWarnings(hub, permission),
    ...(missing.length ? [missingRoles(missing)] : []),
    ...warningsOf(name, spec),
  ]
  if (lacks.length === 0) return { warnings }
  if (permission.metadata.annotations?.[annotation.approval] === approvalRequested)
    return { warnings: [`it waits until somebody approves it: you may not ${lacks.join(', ')}`, ...warnings] }
  const ask = `or set the annotation ${annotation.approval}=${approvalRequested}, and it waits until somebody approves it`
  return { reason: 'Forbidden', message: `${refusalOf(user, targetOf(permission), lacks)}, ${ask}` }
}

/** A cluster or set may come later, so that these are no faults. */
const placeWarnings = (hub: Hub, permission: Permission): string[] => {
  if (isForSet(permission))
    return hub.sets.get(permission.spec.clusterSet)
      ? []
      : [`there is no ManagedClusterSet ${permission.spec.clusterSet}`]
  const { namespace = '' } = permission.metadata
  if (hub.clusters.get(namespace)) return []
  return [
    `namespace ${namespace} belongs to no managed cluster: nothing is delivered; a ClusterPermission belongs in the namespace that has the name of its cluster`,
  ]
}

/** What tells the API server to ask us. Apply these when the server that is named answers: they refuse all writes before. */
export const permissionWebhookConfigurations = (where: WebhookServerAddress): WebhookConfiguration[] => {
  const resources = ['clusterpermissions', 'clustersetpermissions']
  const of = { group: group.rbac, version: 'v1alpha1' }
  const status: Webhook = {
    ...guarding(where, {
      ...of,
      name: 'permissions.status',
      path: webhookPath.validateStatus,
      resources: resources.map((resource) => `${resource}/status`),
    }),
    // The API server asks only about the one field that matters: the hub writes conditions all the time.
    matchConditions: [
      {
        name: 'authorization-changes',
        expression: 'object.?status.?authorization.orValue({}) != oldObject.?status.?authorization.orValue({})',
      },
    ],
  }
  return configurationsOf('lanyard-permissions', {
    mutating: [guarding(where, { ...of, name: 'permissions.stamp', path: webhookPath.mutate, resources })],
    validating: [
      guarding(where, { ...of, name: 'permissions.validate', path: webhookPath.validate, resources }),
      status,
    ],
  })
}
