import type { AWSClusterRoleIdentity, AWSServiceAccountIdentity } from '../api/index.ts'
import { matchesSelector, type LabelSelector } from '../kube/index.ts'
import type { Identity } from './contract.ts'

/** `spec.allowedNamespaces` of an identity. */
export type AllowedNamespaces = AWSClusterRoleIdentity['spec']['allowedNamespaces']

/** Who may use a cluster-scoped identity; one in a namespace is for that namespace. */
export const allowedNamespacesOf = (identity: Exclude<Identity, AWSServiceAccountIdentity>): AllowedNamespaces =>
  identity.spec?.allowedNamespaces

/** A namespace that somebody wants to use an identity from. Without labels it is not known, and no selector matches it. */
export interface NamespaceFacts {
  name: string
  labels?: Readonly<Record<string, string>> | undefined
}

/** Whether clusters of a namespace may use an identity. Absent is nobody, `{}` everybody, else list or selector. */
export const allows = (allowed: AllowedNamespaces, namespace: NamespaceFacts): boolean => {
  if (allowed === undefined || allowed === null) return false
  if (isEverybody(allowed)) return true
  if (allowed.list?.includes(namespace.name)) return true
  const selector = allowed.selector
  return namespace.labels !== undefined && saysSomething(selector) && matchesSelector(selector, namespace.labels)
}

/**
 * `{}`, and what Go programs store for it: `{list: null, selector: {}}`. A selector of its own that is empty may mean all or none,
 * and so it means none: whoever wanted all finds out at once, whoever wanted none would never.
 */
export const isEverybody = (allowed: NonNullable<AllowedNamespaces>): boolean => {
  const { list, selector } = allowed
  if (selector === undefined) return list === undefined || list === null
  return list === null && Object.keys(selector).length === 0
}

const saysSomething = (selector: LabelSelector | undefined): boolean =>
  Object.keys(selector?.matchLabels ?? {}).length > 0 || (selector?.matchExpressions?.length ?? 0) > 0

/** Those of the namespaces that may use an identity. */
export const namespacesAllowed = <N extends NamespaceFacts>(
  allowed: AllowedNamespaces,
  namespaces: readonly N[],
): N[] => namespaces.filter((namespace) => allows(allowed, namespace))

/** Who may use an identity, in words, for messages and tables. */
export const describeAllowed = (allowed: AllowedNamespaces): string => {
  if (allowed === undefined || allowed === null) return 'no namespace'
  if (isEverybody(allowed)) return 'all namespaces'
  const { matchLabels = {}, matchExpressions = [] } = (allowed.selector ?? {}) as LabelSelector
  const terms = [
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(({ key, operator, values = [] }) =>
      values.length ? `${key} ${operator} (${values.join(', ')})` : `${key} ${operator}`,
    ),
  ]
  const parts = [
    ...(allowed.list?.length ? [`namespaces ${allowed.list.join(', ')}`] : []),
    ...(terms.length ? [`namespaces labelled ${terms.join(' and ')}`] : []),
  ]
  return parts.length ? parts.join(', and ') : 'no namespace'
}
