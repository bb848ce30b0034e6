import assert from 'node:assert/strict'
import {
  ClusterPermission,
  ClusterSetPermission,
  ManagedCluster,
  ManagedClusterSet,
  ManifestWork,
  type PermissionSpec,
} from '../src/api/index.ts'
import { ClusterRole, mayAccess, Namespace, Role, type Client, type PolicyRule } from '../src/kube/index.ts'
import { annotation, workNameOf } from '../src/permissions/contract.ts'
import { findCondition } from '../src/runtime/conditions.ts'
import type { ControlPlane } from './control-plane.ts'
import { eventually } from './eventually.ts'
import { startHub } from './lanyard.ts'
import { allow, rule } from './people.ts'

/** Mallory may write permissions for the clusters c1 and c2 as she likes, and holds little herself. */
export const user = 'mallory'
export const permissionsOf = 'rbac.open-cluster-management.io'
const slow = { timeoutMs: 60_000 }

export const her = { kind: 'User', name: user }
export const toHer = (rules: PolicyRule[]): PermissionSpec => ({
  clusterRole: { rules },
  clusterRoleBinding: { subject: her },
})
export const clusterRole = (name: string) => ({
  apiGroup: 'rbac.authorization.k8s.io',
  kind: 'ClusterRole' as const,
  name,
})
export const pods = [rule('get', 'pods')]
export const requested = { [annotation.approval]: 'requested' }

export interface WriteOptions {
  as?: Client
  name?: string
  namespace?: string
  annotations?: Record<string, string>
}

/** A hub on which somebody tries to gain more than she holds. */
export type PermissionScene = Awaited<ReturnType<typeof startPermissionScene>>

/** Starts the hub, with Mallory and what she may. */
export const startPermissionScene = async (plane: ControlPlane) => {
  const admin = plane.client()
  const mallory = plane.client({ user })
  await startHub(plane)
  for (const name of ['c1', 'c2'])
    await admin.of(ManagedCluster).create({ metadata: { name }, spec: { hubAcceptsClient: true } })
  await eventually(
    async () => Boolean((await admin.of(Namespace).find('c1')) && (await admin.of(Namespace).find('c2'))),
    slow,
  )
  await allow(admin, user, [
    rule('create,get,list,update,patch,delete', `clusterpermissions.${permissionsOf}`),
    rule('create,get,list,update,patch,delete', `clustersetpermissions.${permissionsOf}`),
    rule('get,patch,update', `clusterpermissions/status.${permissionsOf}`),
    rule('get,list', 'pods'),
    rule('get', 'configmaps', ['open']),
    { verbs: ['get'], nonResourceURLs: ['/open*'] },
    rule('create,update,patch', 'clusterroles.rbac.authorization.k8s.io'),
    rule('get,update,patch', 'managedclusters.cluster.open-cluster-management.io'),
    rule('create,get,delete', `managedserviceaccounts.authentication.open-cluster-management.io`),
  ])
  await allow(admin, user, [rule('*', '*')], { namespace: 'c1' })
  await allow(admin, user, [rule('get', 'secrets')], { namespace: 'default' })
  await admin.of(ManagedClusterSet).create({ metadata: { name: 'payments' } })
  await admin.of(ManagedClusterSet).create({ metadata: { name: 'hers' } })
  const use = rule('create', 'managedclustersets/bind.cluster.open-cluster-management.io', ['hers'])
  await allow(admin, user, [use])
  await admin
    .of(Role, 'kube-system')
    .create({ metadata: { name: 'strong', namespace: 'kube-system' }, rules: [rule('*', 'secrets')] })
  await admin.of(ClusterRole).create({ metadata: { name: 'team' }, rules: [rule('get', 'pods')] })
  await admin.of(ClusterRole).create({
    metadata: { name: 'gathers' },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { 'gathers/it': 'yes' } }] },
    rules: [],
  })
  await eventually(() =>
    mayAccess(
      admin,
      { username: user },
      {
        ...use,
        verb: 'create',
        group: 'cluster.open-cluster-management.io',
        resource: 'managedclustersets',
        subresource: 'bind',
        name: 'hers',
      },
    ),
  )

  let made = 0
  const permissions = (namespace = 'c1', as = admin) => as.of(ClusterPermission, namespace)
  const write = (spec: PermissionSpec, options: WriteOptions = {}) => {
    const { as = mallory, name = `p-${++made}`, namespace = 'c1', annotations = {} } = options
    return permissions(namespace, as).create({ metadata: { name, namespace, annotations }, spec })
  }
  const edit = (name: string, merge: object, as = mallory) => permissions('c1', as).patch(name, { merge })
  const forSet = (clusterSet: string, permission: PermissionSpec) =>
    mallory.of(ClusterSetPermission).create({ metadata: { name: `s-${++made}` }, spec: { clusterSet, permission } })
  /** Waits until the hub has decided about the present spec. */
  const decided = (name: string): Promise<ClusterPermission> =>
    eventually(async () => {
      const permission = await permissions().get(name)
      const condition = findCondition(permission, 'Authorized')
      assert.equal(condition?.observedGeneration, permission.metadata.generation)
      return permission
    }, slow)
  const workFor = ({ metadata }: ClusterPermission) =>
    admin.of(ManifestWork, metadata.namespace).find(workNameOf(metadata.name!, metadata.uid!))
  /** Waits until a permission waits for approval and nothing of it is delivered; throws the reason, like a refusal. */
  const withheld = async (name: string): Promise<never> => {
    const permission = await eventually(async () => {
      const now = await decided(name)
      assert.equal(findCondition(now, 'Authorized')?.status, 'False')
      assert.equal(await workFor(now), undefined)
      return now
    }, slow)
    throw new Error(`waits: ${findCondition(permission, 'Authorized')!.message}`)
  }
  /** Waits until it is delivered. */
  const delivered = (name: string): Promise<ManifestWork> =>
    eventually(async () => {
      const work = await workFor(await decided(name))
      assert.ok(work)
      return work
    }, slow)
  /** Sets the approval for what is there now. */
  const approve = async (name: string, as = admin) => {
    const { status } = await decided(name)
    return edit(name, { metadata: { annotations: { [annotation.approve]: status!.authorization!.wanted } } }, as)
  }
  return { plane, admin, mallory, permissions, write, edit, forSet, decided, withheld, delivered, approve }
}
