import type { PermissionSpec } from '../../api/index.ts'
import { matchesSelector, type ClusterRole, type PolicyRule, type Role } from '../../kube/index.ts'
import type { Informer } from '../../runtime/index.ts'
import { nameOfRef, type HubRoleRef } from '../bindings.ts'

/** The roles of the hub, as the caches have them. */
export interface HubRoles {
  readonly clusterRoles: Pick<Informer<ClusterRole>, 'get' | 'list'>
  readonly roles: Pick<Informer<Role>, 'get'>
}

/** A role of the hub with its rules as they are now. */
export interface CopiedRole {
  readonly ref: HubRoleRef
  readonly rules: PolicyRule[]
}

/** The roles that a permission copies, and those that there are not. */
export const copiesOf = (spec: PermissionSpec, hub: HubRoles): { copies: CopiedRole[]; missing: HubRoleRef[] } => {
  const copies: CopiedRole[] = []
  const missing: HubRoleRef[] = []
  for (const ref of spec.roleRefs ?? []) {
    const rules = rulesOf(ref, hub)
    if (rules) copies.push({ ref, rules })
    else missing.push(ref)
  }
  return { copies, missing }
}

const rulesOf = (ref: HubRoleRef, hub: HubRoles): PolicyRule[] | undefined => {
  if (ref.kind === 'Role') return plainRules(hub.roles.get(`${ref.namespace}/${ref.name}`))
  const role = hub.clusterRoles.get(ref.name)
  return role && gathered(role, hub, new Set())
}

/**
 * The rules of a role and of those that it gathers by label, as they are now: what the hub's controller manager has written
 * into the gathering role may be behind, or missing where there is none.
 */
const gathered = (role: ClusterRole, hub: HubRoles, seen: Set<string>): PolicyRule[] => {
  const selectors = role.aggregationRule?.clusterRoleSelectors
  if (!selectors?.length || seen.has(role.metadata.name!)) return plainRules(role) ?? []
  seen.add(role.metadata.name!)
  const parts = hub.clusterRoles
    .list()
    .filter(({ metadata }) => metadata.name !== role.metadata.name)
    .filter(({ metadata }) => selectors.some((selector) => matchesSelector(selector, metadata.labels)))
    .toSorted((a, b) => (a.metadata.name! < b.metadata.name! ? -1 : 1))
  const rules = new Map<string, PolicyRule>()
  for (const rule of parts.flatMap((part) => gathered(part, hub, seen))) rules.set(JSON.stringify(rule), rule)
  return [...rules.values()]
}

// A role that is being deleted gives nothing any more.
const plainRules = (role: Role | undefined): PolicyRule[] | undefined =>
  role && !role.metadata.deletionTimestamp ? (role.rules ?? []) : undefined

/** Whether a change of a ClusterRole may change what a permission copies: it is named, or one that gathers is. */
export const isAffected = (spec: PermissionSpec | undefined, changed: ClusterRole, hub: HubRoles): boolean =>
  spec?.roleRefs?.some(
    (ref) =>
      ref.kind === 'ClusterRole' &&
      (ref.name === changed.metadata.name || hub.clusterRoles.get(ref.name)?.aggregationRule !== undefined),
  ) ?? false

/** Missing roles in words. */
export const missingRoles = (missing: readonly HubRoleRef[]): string =>
  `the hub has no ${missing.map(nameOfRef).join(', no ')}: what refers to it is not delivered; create it, or correct roleRefs`
