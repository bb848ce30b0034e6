import type { PolicyRule } from '../kube/index.ts'

/** One thing that somebody wants to do. A `*` asks for everything of that sort, as the API server's own reviews take it. */
export interface Deed {
  verb: string
  group?: string | undefined
  /** With its subresource, as in `pods/log`. */
  resource?: string | undefined
  name?: string | undefined
  /** A path outside the API, in place of group and resource. */
  path?: string | undefined
}

/** Whether one rule allows a deed, by the rules of Kubernetes' RBAC. */
export const ruleAllows = (rule: PolicyRule, deed: Deed): boolean => {
  if (!has(rule.verbs, deed.verb)) return false
  if (deed.path !== undefined) return (rule.nonResourceURLs ?? []).some((url) => urlCovers(url, deed.path!))
  return (
    has(rule.apiGroups, deed.group ?? '') &&
    (rule.resources ?? []).some((resource) => resourceCovers(resource, deed.resource ?? '')) &&
    nameFits(rule.resourceNames, deed.name)
  )
}

/** Whether some rule allows it. */
export const rulesAllow = (rules: readonly PolicyRule[], deed: Deed): boolean =>
  rules.some((rule) => ruleAllows(rule, deed))

/** A rule taken apart into the deeds that it allows: what has to be asked before somebody may give it. */
export const deedsOf = (rule: PolicyRule): Deed[] => {
  const names = rule.resourceNames?.length ? rule.resourceNames : [undefined]
  return rule.verbs.flatMap((verb) => [
    ...(rule.nonResourceURLs ?? []).map((path) => ({ verb, path })),
    ...(rule.apiGroups ?? []).flatMap((group) =>
      (rule.resources ?? []).flatMap((resource) => names.map((name) => ({ verb, group, resource, name }))),
    ),
  ])
}

/** What of the wanted rules the held ones do not cover. Each deed must be covered by one rule: halves of two do not add up. */
export const uncovered = (held: readonly PolicyRule[], wanted: readonly PolicyRule[]): Deed[] =>
  wanted.flatMap(deedsOf).filter((deed) => !rulesAllow(held, deed))

/** Whether the held rules cover all that is wanted: then nothing is gained by giving it to somebody. */
export const covers = (held: readonly PolicyRule[], wanted: readonly PolicyRule[]): boolean =>
  uncovered(held, wanted).length === 0

/** The deeds of all rules, without those that another one of them includes. */
export const distinctDeeds = (rules: readonly PolicyRule[]): Deed[] => {
  const byKey = new Map<string, Deed>()
  for (const deed of rules.flatMap(deedsOf)) byKey.set(JSON.stringify(deed), deed)
  const broad = [...byKey.values()].filter(isBroad).map(ruleOf)
  return [...byKey.values()].filter(
    (deed) => !broad.some((rule) => ruleAllows(rule, deed) && !sameDeed(ruleOf(deed), rule)),
  )
}

const isBroad = (deed: Deed): boolean =>
  [deed.verb, deed.group, deed.resource, deed.path].some((part) => part?.includes('*'))

const ruleOf = ({ verb, group, resource, name, path }: Deed): PolicyRule =>
  path === undefined
    ? { verbs: [verb], apiGroups: [group!], resources: [resource!], resourceNames: name === undefined ? [] : [name] }
    : { verbs: [verb], nonResourceURLs: [path] }

const sameDeed = (a: PolicyRule, b: PolicyRule): boolean => JSON.stringify(a) === JSON.stringify(b)

/** A deed as a person says it: `get secrets`, `* deployments.apps "web"`, `get /metrics`. */
export const describeDeed = ({ verb, group, resource, name, path }: Deed): string =>
  path === undefined
    ? `${verb} ${resource}${group ? `.${group}` : ''}${name === undefined ? '' : ` ${JSON.stringify(name)}`}`
    : `${verb} ${path}`

const has = (list: readonly string[] | undefined, value: string): boolean =>
  list?.some((one) => one === '*' || one === value) ?? false

// `*/log` is the subresource of every resource; `pods` is not its subresources.
const resourceCovers = (rule: string, wanted: string): boolean => {
  if (rule === '*' || rule === wanted) return true
  const slash = wanted.indexOf('/')
  return slash >= 0 && rule === `*/${wanted.slice(slash + 1)}`
}

const nameFits = (names: readonly string[] | undefined, wanted: string | undefined): boolean =>
  !names?.length || (wanted !== undefined && wanted !== '' && names.includes(wanted))

// Only a star at the end stands for anything.
const urlCovers = (rule: string, wanted: string): boolean =>
  rule === '*' || rule === wanted || (rule.endsWith('*') && wanted.startsWith(rule.replace(/\*+$/, '')))

/** What is wrong with a rule, as the API server of the managed cluster would find it. */
export const ruleFault = (
  rule: PolicyRule,
  { namespaced }: { namespaced: boolean },
): { field: string; message: string } | undefined => {
  if (!rule.verbs?.length) return { field: '.verbs', message: 'is empty: say what may be done, such as get' }
  if (rule.nonResourceURLs?.length) {
    if (namespaced)
      return {
        field: '.nonResourceURLs',
        message: 'cannot be in a Role, which is for one namespace: put it in clusterRole',
      }
    if (rule.apiGroups?.length || rule.resources?.length || rule.resourceNames?.length)
      return {
        field: '.nonResourceURLs',
        message: 'cannot be in one rule with apiGroups, resources or resourceNames: make two rules',
      }
    return undefined
  }
  if (!rule.apiGroups?.length) return { field: '.apiGroups', message: 'is empty: "" is the core group' }
  if (!rule.resources?.length) return { field: '.resources', message: 'is empty: say on what, such as pods' }
  return undefined
}
