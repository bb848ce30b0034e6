import type { PermissionSpec } from '../api/index.ts'
import type { LabelSelector, Subject } from '../kube/index.ts'
import { equal } from '../runtime/index.ts'

export const rbacGroup = 'rbac.authorization.k8s.io'

/** Where something is on the managed cluster: in one namespace, in those with certain labels, or in the cluster as a whole. */
export type Place = { namespace: string } | { namespaceSelector: LabelSelector } | 'cluster'

/**
 * Where the role of a binding comes from: `own` rules of the permission, a `copy` of a role of the hub, or the `managed`
 * cluster, which may have anything under that name. `nowhere`: it names none, and the permission has none.
 */
export type RoleSource = 'own' | 'copy' | 'managed' | 'nowhere'

/** A binding with everything filled in. */
export interface Binding {
  /** In the spec, for messages. */
  readonly field: string
  readonly kind: 'ClusterRoleBinding' | 'RoleBinding'
  readonly name: string
  readonly place: Place
  readonly subjects: readonly Subject[]
  readonly role: { readonly kind: 'Role' | 'ClusterRole'; readonly name: string }
  readonly source: RoleSource
}

export type HubRoleRef = NonNullable<PermissionSpec['roleRefs']>[number]
type RoleEntry = NonNullable<PermissionSpec['roles']>[number]

/** The bindings of a permission, in its order. The several take the place of the one. */
export const bindingsOf = (name: string, spec: PermissionSpec): Binding[] => {
  const { clusterRoleBinding: one, clusterRoleBindings: several = [], roleBindings = [] } = spec
  const cluster = several.length
    ? several.map((binding, i) => ({ binding, field: `clusterRoleBindings[${i}]` }))
    : one
      ? [{ binding: one, field: 'clusterRoleBinding' }]
      : []
  return [
    ...cluster.map(({ binding, field }): Binding => {
      const role = { kind: 'ClusterRole' as const, name: binding.roleRef?.name ?? name }
      return {
        field,
        kind: 'ClusterRoleBinding',
        name: binding.name || name,
        place: 'cluster',
        subjects: subjectsOf(binding),
        role,
        source: sourceOf(name, spec, role, 'cluster'),
      }
    }),
    ...roleBindings.map((binding, i): Binding => {
      const role = { kind: binding.roleRef.kind, name: binding.roleRef.name || name }
      const place = placeOf(binding)
      return {
        field: `roleBindings[${i}]`,
        kind: 'RoleBinding',
        name: binding.name || name,
        place,
        subjects: subjectsOf(binding),
        role,
        source: sourceOf(name, spec, role, place, Boolean(binding.roleRef.name)),
      }
    }),
  ]
}

/** Where an entry goes; the schema sees to it that it says one of the two. */
export const placeOf = (entry: Pick<RoleEntry, 'namespace' | 'namespaceSelector'>): Place =>
  entry.namespaceSelector ? { namespaceSelector: entry.namespaceSelector } : { namespace: entry.namespace ?? '' }

export const samePlace = (a: Place, b: Place): boolean => equal(a, b) && sameSelector(a, b)

// An empty selector selects everything, and is not the same as none.
const sameSelector = (a: Place, b: Place): boolean => hasSelector(a) === hasSelector(b)

export const hasSelector = (place: Place): place is { namespaceSelector: LabelSelector } =>
  place !== 'cluster' && 'namespaceSelector' in place

export const subjectsOf = (of: { subject?: Subject | undefined; subjects?: Subject[] | undefined }): Subject[] =>
  of.subjects?.length ? of.subjects : of.subject ? [of.subject] : []

/** The ManagedServiceAccounts that it is for. */
export const accountsOf = (name: string, spec: PermissionSpec): string[] => {
  const subjects = bindingsOf(name, spec).flatMap((binding) => binding.subjects)
  return [...new Set(subjects.filter(({ kind }) => kind === 'ManagedServiceAccount').map((subject) => subject.name))]
}

const sourceOf = (
  name: string,
  spec: PermissionSpec,
  role: Binding['role'],
  place: Place,
  named = true,
): RoleSource => {
  if (role.name === name && isOwn(spec, role.kind, place)) return 'own'
  if (spec.roleRefs?.some((ref) => isCopy(ref, role, place))) return 'copy'
  return named && role.name !== name ? 'managed' : 'nowhere'
}

// A Role that is somewhere else is no reason to bind what has its name here: only one for the very same place counts.
const isOwn = (spec: PermissionSpec, kind: string, place: Place): boolean =>
  kind === 'ClusterRole'
    ? spec.clusterRole !== undefined
    : (spec.roles?.some((role) => samePlace(placeOf(role), place)) ?? false)

/** Whether a copied role is what a binding at this place refers to. */
export const isCopy = (ref: HubRoleRef, role: Binding['role'], place: Place): boolean =>
  ref.kind === role.kind &&
  ref.name === role.name &&
  (ref.kind === 'ClusterRole' || (!hasSelector(place) && place !== 'cluster' && place.namespace === ref.namespace))

/** `ClusterRole admin`, `Role default/reader`, for messages. */
export const nameOfRef = (ref: { kind: string; name: string; namespace?: string | undefined }): string =>
  `${ref.kind} ${ref.namespace ? `${ref.namespace}/` : ''}${ref.name}`
