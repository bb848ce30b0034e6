/**
 * Permissions for add-ons, each as small as it can be. None has a wildcard, and none reaches out of the cluster's own
 * namespace: `in` says so where one does.
 */
import type { PolicyRule } from '../kube/index.ts'
import type { Permission } from './hub/index.ts'

/** A resource with its API group: `{ resource: 'configmaps' }`, `{ group: 'example.com', resource: 'reports' }`. */
export interface What {
  group?: string | undefined
  resource: string
  /** Only these objects. Kubernetes cannot restrict `create` by name, nor `list` without a field selector. */
  names?: readonly string[] | undefined
}

const rule = ({ group = '', resource, names }: What, verbs: string[]): PolicyRule => {
  if ([group, resource, ...verbs].includes('*'))
    throw new RangeError('a permission of an add-on names what it is for: "*" is not taken')
  return { apiGroups: [group], resources: [resource], verbs, ...(names ? { resourceNames: [...names] } : {}) }
}

/** Reads objects, and follows their changes. */
export const reads = (what: What): PolicyRule => rule(what, ['get', 'list', 'watch'])

/** Reads named objects only, one by one: for Secrets, nothing more should ever be given. */
export const readsOne = (what: What & { names: readonly string[] }): PolicyRule => rule(what, ['get'])

/** Makes objects and keeps them up to date. */
export const maintains = (what: Omit<What, 'names'>): PolicyRule =>
  rule(what, ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'])

/** Writes the status of objects that others make. */
export const reportsStatus = (what: What): PolicyRule =>
  rule({ ...what, resource: `${what.resource}/status` }, ['update', 'patch'])

/** These rules, in the namespace of the add-on's own cluster. */
export const inOwnNamespace = (...rules: PolicyRule[]): Permission => ({ in: 'cluster', rules })

/** A ClusterRole that exists, in the namespace of the add-on's own cluster. */
export const asClusterRole = (name: string): Permission => ({ in: 'cluster', roleRef: { kind: 'ClusterRole', name } })

/** A Role of one namespace that the add-on shares with all clusters: whatever is there, each of them sees. */
export const inSharedNamespace = (namespace: string, role: string): Permission => ({
  in: 'namespace',
  namespace,
  roleRef: { kind: 'Role', name: role },
})
