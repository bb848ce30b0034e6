import { conditionType, type ClusterPermission, type ClusterSetPermission, type PermissionSpec } from '../api/index.ts'
import type { Condition, PolicyRule, Subject } from '../kube/index.ts'
import { bindingsOf, placeOf, samePlace, type Place } from './bindings.ts'

/** Who gets it. A ManagedServiceAccount is a ServiceAccount on the managed cluster, in the namespace of its add-on. */
export type GrantSubject = Subject

/** One subject that gets one role at one place, as a permission says it. */
export interface Grant {
  readonly subject: GrantSubject
  readonly place: Place
  readonly role: { readonly kind: 'Role' | 'ClusterRole'; readonly name: string }
  /** Undefined where only the managed cluster knows them: its own roles, and copies of roles that nobody gave us. */
  readonly rules: readonly PolicyRule[] | undefined
  /** Through which permission: `ClusterPermission c1/readers`, and the field of the binding in it. */
  readonly through: { readonly kind: string; readonly namespace?: string | undefined; readonly name: string }
  readonly field: string
  readonly state: GrantState
}

/** Whether the managed cluster has said that it is in force, it is on its way, waits for approval, or cannot be delivered. */
export const permissionStates = ['applied', 'pending', 'waits', 'invalid'] as const
export type GrantState = (typeof permissionStates)[number]

/** Rules of roles of the hub, for copies: `rulesOf({ kind: 'ClusterRole', name: 'view' })`. */
export type RulesOf = (ref: { kind: string; name: string; namespace?: string | undefined }) => PolicyRule[] | undefined

/** What a permission gives to whom. A set's permission gives it on each cluster of the set. */
export const grantsOf = (
  permission: ClusterPermission | ClusterSetPermission,
  rulesOf: RulesOf = () => undefined,
): Grant[] => {
  const spec = specOf(permission)
  const { name = '', namespace } = permission.metadata
  const through = { kind: isForSet(permission) ? 'ClusterSetPermission' : 'ClusterPermission', namespace, name }
  const state = grantsState(permission)
  return bindingsOf(name, spec).flatMap(({ subjects, place, role, source, field }) => {
    const copied =
      source === 'copy' ? rulesOf({ ...role, ...(role.kind === 'Role' ? namespaceAt(place) : {}) }) : undefined
    const rules = source === 'own' ? ownRules(spec, role.kind, place) : copied
    return subjects.map((subject) => ({ subject, place, role, rules, through, field, state }))
  })
}

/** The roles and bindings of either kind. */
export const specOf = (permission: ClusterPermission | ClusterSetPermission): PermissionSpec =>
  isForSet(permission) ? permission.spec.permission : (permission.spec ?? {})

export const isForSet = (permission: ClusterPermission | ClusterSetPermission): permission is ClusterSetPermission =>
  permission.spec !== undefined && 'clusterSet' in permission.spec

const ownRules = (spec: PermissionSpec, kind: string, place: Place): PolicyRule[] =>
  kind === 'ClusterRole'
    ? (spec.clusterRole?.rules ?? [])
    : (spec.roles ?? []).filter((role) => samePlace(placeOf(role), place)).flatMap(({ rules }) => rules)

const namespaceAt = (place: Place): { namespace?: string } =>
  place !== 'cluster' && 'namespace' in place ? { namespace: place.namespace } : {}

/** The state of all that a permission gives. */
export const grantsState = ({ status }: ClusterPermission | ClusterSetPermission): GrantState => {
  const { validation, authorized, workApplied } = conditionType.clusterPermission
  const is = (type: string, value: Condition['status']): boolean =>
    status?.conditions?.some((condition) => condition.type === type && condition.status === value) ?? false
  if (is(validation, 'False')) return 'invalid'
  if (is(authorized, 'False')) return 'waits'
  return is(workApplied, 'True') ? 'applied' : 'pending'
}
