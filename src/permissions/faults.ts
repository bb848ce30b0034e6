import type { PermissionSpec } from '../api/index.ts'
import { group } from '../api/index.ts'
import type { LabelSelector, PolicyRule, Subject } from '../kube/index.ts'
import { bindingsOf, hasSelector, nameOfRef, placeOf, rbacGroup, type Binding, type Place } from './bindings.ts'
import { ruleFault } from './rules.ts'

/** One fault: where, and what to do about it. */
export interface Fault {
  field: string
  message: string
}

/** More faults than this help nobody. */
const mostFaults = 10

/** What is wrong with a permission whatever the clusters are like; `at` is where its spec is. */
export const faultsOf = (name: string, spec: PermissionSpec, at = 'spec'): Fault[] => {
  const bindings = bindingsOf(name, spec)
  const faults = [
    ...emptiness(spec, bindings),
    ...ruleFaults(spec),
    ...(spec.roles ?? []).flatMap((role, i) => placeFaults(placeOf(role), `roles[${i}]`)),
    ...bindings.flatMap((binding) => [
      ...placeFaults(binding.place, binding.field),
      ...nameFaults(binding.name, `${binding.field}.name`),
      ...roleFaults(binding, spec),
      ...subjectFaults(binding),
    ]),
    ...groupFaults(spec),
    ...twins(name, spec, bindings),
  ]
  return faults.slice(0, mostFaults).map(({ field, message }) => ({ field: field ? `${at}.${field}` : at, message }))
}

/** Whether roles are given and nobody gets them. */
export const hasNoBindings = (spec: PermissionSpec): boolean =>
  !spec.clusterRoleBinding && !spec.clusterRoleBindings?.length && !spec.roleBindings?.length && !spec.roleRefs?.length

const emptiness = (spec: PermissionSpec, bindings: readonly Binding[]): Fault[] => {
  if (bindings.length > 0 || spec.roleRefs?.length) return []
  const something = spec.clusterRole || spec.roles?.length
  const message = something
    ? 'no bindings defined: nobody would get these roles; add clusterRoleBinding or roleBindings, and say whom they are for'
    : 'is empty: give clusterRole and clusterRoleBinding, roles and roleBindings, or roleRefs'
  return [{ field: '', message }]
}

const ruleFaults = (spec: PermissionSpec): Fault[] => {
  const check = (rules: readonly PolicyRule[], at: string, namespaced: boolean): Fault[] =>
    rules.flatMap((rule, i) => {
      const fault = ruleFault(rule, { namespaced })
      return fault ? [{ field: `${at}.rules[${i}]${fault.field}`, message: fault.message }] : []
    })
  return [
    ...check(spec.clusterRole?.rules ?? [], 'clusterRole', false),
    ...(spec.roles ?? []).flatMap((role, i) => check(role.rules, `roles[${i}]`, true)),
  ]
}

const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const qualifiedName = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/
const labelValue = /^([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?$/

const placeFaults = (place: Place, field: string): Fault[] => {
  if (place === 'cluster') return []
  if (hasSelector(place)) return selectorFaults(place.namespaceSelector, `${field}.namespaceSelector`)
  if (dnsLabel.test(place.namespace)) return []
  return [{ field: `${field}.namespace`, message: `${JSON.stringify(place.namespace)} is not a name of a namespace` }]
}

/** What is wrong with a selector; the schema has looked at its operators. */
const selectorFaults = ({ matchLabels = {}, matchExpressions = [] }: LabelSelector, field: string): Fault[] => {
  const key = (text: string, at: string): Fault[] =>
    qualifiedName.test(text) ? [] : [{ field: at, message: `${JSON.stringify(text)} is not a label key` }]
  const value = (text: string, at: string): Fault[] =>
    labelValue.test(text)
      ? []
      : [{ field: at, message: `${JSON.stringify(text)} is not a value that a label can have` }]
  return [
    ...Object.entries(matchLabels).flatMap(([name, text]) => [
      ...key(name, `${field}.matchLabels`),
      ...value(text, `${field}.matchLabels[${name}]`),
    ]),
    ...matchExpressions.flatMap(({ key: name, operator, values = [] }, i) => {
      const at = `${field}.matchExpressions[${i}]`
      const compares = operator === 'In' || operator === 'NotIn'
      return [
        ...key(name, `${at}.key`),
        ...values.flatMap((text, j) => value(text, `${at}.values[${j}]`)),
        ...(compares && values.length === 0 ? [{ field: `${at}.values`, message: `${operator} needs values` }] : []),
        ...(!compares && values.length ? [{ field: `${at}.values`, message: `${operator} takes no values` }] : []),
      ]
    }),
  ]
}

// RBAC allows more in names than other kinds do; only what would lead to another path is refused.
const nameFaults = (name: string, field: string): Fault[] =>
  name === '.' || name === '..' || /[/%]/.test(name)
    ? [{ field, message: `${JSON.stringify(name)} cannot be a name: leave out / and %` }]
    : []

const roleFaults = ({ field, role, source, place }: Binding, spec: PermissionSpec): Fault[] => {
  if (source !== 'nowhere') return nameFaults(role.name, `${field}.roleRef.name`)
  if (role.kind === 'ClusterRole')
    return [
      {
        field: `${field}.roleRef`,
        message:
          'names no role, and there is no clusterRole: add one, or name a ClusterRole that the managed cluster has',
      },
    ]
  const where = hasSelector(place)
    ? 'the same namespaceSelector'
    : `namespace ${(place as { namespace: string }).namespace}`
  const others = spec.roles?.length ? 'none of roles is for that place' : 'there are no roles'
  return [
    {
      field: `${field}.roleRef`,
      message: `names no Role, and ${others}: add one with ${where}, or name a Role that is there`,
    },
  ]
}

const subjectFaults = ({ field, subjects }: Binding): Fault[] => {
  if (subjects.length === 0) return [{ field: `${field}.subjects`, message: 'is empty: say whom it is for' }]
  return subjects.flatMap((subject, i) => {
    const at = subjects.length === 1 ? `${field}.subject` : `${field}.subjects[${i}]`
    const fault = subjectFault(subject)
    return fault ? [{ field: `${at}${fault.field}`, message: fault.message }] : []
  })
}

const subjectFault = ({ kind, apiGroup = '', namespace = '', name }: Subject): Fault | undefined => {
  const isAccount = kind === 'ServiceAccount' || kind === 'ManagedServiceAccount'
  if (!isAccount && kind !== 'User' && kind !== 'Group')
    return { field: '.kind', message: `${kind} is unknown: use User, Group, ServiceAccount or ManagedServiceAccount` }
  const expected = {
    User: rbacGroup,
    Group: rbacGroup,
    ServiceAccount: '',
    ManagedServiceAccount: group.authentication,
  }[kind]
  if (apiGroup !== expected && !(apiGroup === '' && expected === rbacGroup))
    return { field: '.apiGroup', message: `must be ${JSON.stringify(expected)} for a ${kind}` }
  if (kind === 'ServiceAccount' && !dnsLabel.test(namespace))
    return { field: '.namespace', message: 'a ServiceAccount needs its namespace on the managed cluster' }
  if (kind !== 'ServiceAccount' && namespace)
    return {
      field: '.namespace',
      message:
        kind === 'ManagedServiceAccount'
          ? "leave it out: only the cluster's own ManagedServiceAccounts, in its namespace on the hub, can be named"
          : `a ${kind} has no namespace: leave it out`,
    }
  if (isAccount && !/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(name))
    return { field: '.name', message: `${JSON.stringify(name)} cannot be the name of a service account` }
  return undefined
}

const groupFaults = (spec: PermissionSpec): Fault[] => {
  const refs = [
    ...(spec.roleRefs ?? []).map((ref, i) => ({ ref, field: `roleRefs[${i}]` })),
    ...(spec.roleBindings ?? []).map(({ roleRef }, i) => ({ ref: roleRef, field: `roleBindings[${i}].roleRef` })),
    ...[spec.clusterRoleBinding, ...(spec.clusterRoleBindings ?? [])].flatMap((binding, i) => {
      const field = i === 0 ? 'clusterRoleBinding.roleRef' : `clusterRoleBindings[${i - 1}].roleRef`
      return binding?.roleRef ? [{ ref: binding.roleRef, field }] : []
    }),
  ]
  return refs
    .filter(({ ref }) => ref.apiGroup && ref.apiGroup !== rbacGroup)
    .map(({ field }) => ({ field: `${field}.apiGroup`, message: `must be ${rbacGroup}, or left out` }))
}

interface Made {
  field: string
  what: string
  place: Place
}

/** Two of one name at one place would be applied in turn for ever. Whether two selectors meet, only time can tell. */
const twins = (name: string, spec: PermissionSpec, bindings: readonly Binding[]): Fault[] => {
  const made: Made[] = [
    ...(spec.clusterRole ? [{ field: 'clusterRole', what: `ClusterRole ${name}`, place: 'cluster' as const }] : []),
    ...(spec.roles ?? []).map((role, i) => ({ field: `roles[${i}]`, what: `Role ${name}`, place: placeOf(role) })),
    ...(spec.roleRefs ?? []).map((ref, i): Made => ({
      field: `roleRefs[${i}]`,
      what: `${ref.kind} ${ref.name}`,
      place: ref.kind === 'Role' ? { namespace: ref.namespace ?? '' } : 'cluster',
    })),
    ...bindings.map(({ field, kind, name: of, place }) => ({ field, what: `${kind} ${of}`, place })),
  ]
  const first = new Map<string, string>()
  return made.flatMap(({ field, what, place }) => {
    const id = JSON.stringify([what, place])
    const twin = first.get(id)
    if (twin === undefined) {
      first.set(id, field)
      return []
    }
    const where =
      place === 'cluster' ? '' : hasSelector(place) ? ' for the same namespaces' : ` in namespace ${place.namespace}`
    const fix = field.includes('indings') ? 'give one of them another name' : 'put their rules together'
    return [{ field, message: `is ${what}${where} like ${twin}: ${fix}` }]
  })
}

const everybody = new Set([
  'system:anonymous',
  'system:unauthenticated',
  'system:authenticated',
  'system:serviceaccounts',
])

/** What is allowed and may not be meant. */
export const warningsOf = (name: string, spec: PermissionSpec): string[] => {
  const bindings = bindingsOf(name, spec)
  const broad = bindings.flatMap(({ field, subjects }) =>
    subjects
      .filter((subject) => everybody.has(subject.name))
      .map((subject) => `${field}: ${subject.name} is everybody of its sort`),
  )
  const unbound =
    bindings.length === 0 && spec.roleRefs?.length ? ['no bindings: the roles are copied, and nobody gets them'] : []
  const both =
    spec.clusterRoleBinding && spec.clusterRoleBindings?.length
      ? ['clusterRoleBinding is not looked at, because there are clusterRoleBindings']
      : []
  return [...unbound, ...both, ...broad]
}

/** The roles of the hub that it copies, in words. */
export const refNames = (spec: PermissionSpec): string[] => (spec.roleRefs ?? []).map(nameOfRef)
