import { label, type ManagedClusterAddOn } from '../../api/index.ts'
import {
  apiVersionOf,
  ClusterRoleBinding,
  Role,
  RoleBinding,
  type KubeObject,
  type Resource,
  type RoleRef,
  type Subject,
} from '../../kube/index.ts'
import { applySet } from '../../runtime/index.ts'
import { addOnGroup, kubeClientOf, RegistrationApplied, serviceAccountUser } from '../contract.ts'
import type { AddOn, Permission } from './definition.ts'
import { fieldManager, index, targetsOf, type AddOnHub } from './hub.ts'
import type { Report } from './report.ts'
import { declaredAccount, subjectRefusal } from './subject.ts'
import { lockedOut } from './token-infrastructure.ts'

const apiGroup = 'rbac.authorization.k8s.io'

/** Binds the add-on's permissions to the subject that its agent declared, and follows it when it changes. */
export const permissions = async (
  hub: AddOnHub,
  addOn: ManagedClusterAddOn,
  definition: AddOn,
  signal: AbortSignal,
): Promise<Report> => {
  const key = `${addOn.metadata.namespace}/${addOn.metadata.name}`
  const none = async (report: Report): Promise<Report> => {
    await removePermissions(hub, key, signal)
    return report
  }
  const { namespace: cluster = '', name = '' } = addOn.metadata
  if (definition.registrations.length === 0) return none({ conditions: [RegistrationApplied.none()] })
  if (!definition.registrations.some(({ type }) => type === 'kubeClient'))
    return none({ conditions: [RegistrationApplied.applied('the add-on needs no permission on the hub')] })

  const locked = lockedOut(hub, cluster)
  if (locked) return none({ conditions: [RegistrationApplied.failed(locked)] })
  const item = kubeClientOf(addOn)
  const user = item?.kubeClient?.subject?.user
  if (!item || !user) return none({ conditions: [RegistrationApplied.pending()] })
  const refusal = subjectRefusal(cluster, name, item)
  if (refusal) return none({ conditions: [RegistrationApplied.refused(refusal.message)] })

  const desired = permissionObjects(cluster, definition, boundSubjects(cluster, name, user))
  const obsolete = permissionsInPlace(hub, key)
  await applySet(desired, { client: hub.client, targets: targetsOf(hub), fieldManager, obsolete, signal })
  const count = definition.permissions.length
  return {
    conditions: [RegistrationApplied.applied(`${count} permission${count === 1 ? ' is' : 's are'} bound to ${user}`)],
  }
}

/** Never the group that the add-on has on all clusters: what is bound to it in one cluster's namespace, every cluster could use. */
const boundSubjects = (cluster: string, addOn: string, user: string): Subject[] => {
  const account = declaredAccount(cluster, addOn, user)
  if (account && user === serviceAccountUser(cluster, account))
    return [{ kind: 'ServiceAccount', namespace: cluster, name: account }]
  return [
    { kind: 'User', apiGroup, name: user },
    { kind: 'Group', apiGroup, name: addOnGroup(cluster, addOn) },
  ]
}

/** All RBAC objects of an add-on on one cluster. */
export const permissionObjects = (cluster: string, { name, permissions }: AddOn, subjects: Subject[]): KubeObject[] => {
  const labels = { [label.clusterName]: cluster, [label.addOnName]: name }
  const made = (of: Resource<KubeObject>, metadata: KubeObject['metadata'], fields: object): KubeObject => ({
    apiVersion: apiVersionOf(of),
    kind: of.kind,
    metadata: { ...metadata, labels },
    ...fields,
  })
  const bind = (permission: Permission, roleRef: Omit<RoleRef, 'apiGroup'>, namespace: string): KubeObject =>
    made(
      RoleBinding,
      { name: bindingName(cluster, name, permission, roleRef), namespace },
      { roleRef: { apiGroup, ...roleRef }, subjects },
    )
  return permissions.flatMap((permission, at): KubeObject[] => {
    if (permission.in === 'hub') {
      const roleRef = { kind: 'ClusterRole', name: permission.clusterRole }
      const binding = { name: bindingName(cluster, name, permission, roleRef) }
      return [made(ClusterRoleBinding, binding, { roleRef: { apiGroup, ...roleRef }, subjects })]
    }
    if (permission.in === 'namespace') return [bind(permission, permission.roleRef, permission.namespace)]
    if ('roleRef' in permission) return [bind(permission, permission.roleRef, cluster)]
    const role = `${prefix}${name}${at === 0 ? '' : `:${at}`}${suffix}`
    return [
      made(Role, { name: role, namespace: cluster }, { rules: permission.rules }),
      bind(permission, { kind: 'Role', name: role }, cluster),
    ]
  })
}

const prefix = 'open-cluster-management:'
const suffix = ':agent'

/** In namespaces that clusters share, and on the whole hub, the cluster is part of the name. */
const bindingName = (
  cluster: string,
  addOn: string,
  { in: place }: Permission,
  { kind, name }: Omit<RoleRef, 'apiGroup'>,
): string =>
  name.startsWith(prefix) && kind === 'Role'
    ? name
    : `${prefix}${place === 'cluster' ? '' : `${cluster}:`}${addOn}:${kind.toLowerCase()}:${name}${suffix}`

const isNamedByUs = ({ metadata }: KubeObject): boolean =>
  Boolean(metadata.name?.startsWith(prefix) && metadata.name.endsWith(suffix))

const permissionsInPlace = (hub: AddOnHub, key: string): KubeObject[] => {
  const typed = (objects: KubeObject[], of: Resource<KubeObject>): KubeObject[] =>
    objects.filter(isNamedByUs).map((object) => ({ ...object, apiVersion: apiVersionOf(of), kind: of.kind }))
  return [
    ...typed(hub.hubBindings.by(index.addOn, key), ClusterRoleBinding),
    ...typed(hub.bindings.by(index.addOn, key), RoleBinding),
    ...typed(hub.roles.by(index.addOn, key), Role),
  ]
}

/** Takes the add-on's permissions away; nothing is sent when there are none. */
export const removePermissions = async (hub: AddOnHub, key: string, signal: AbortSignal): Promise<void> => {
  const obsolete = permissionsInPlace(hub, key)
  if (obsolete.length > 0)
    await applySet([], { client: hub.client, targets: targetsOf(hub), fieldManager, obsolete, signal })
}
