import { UsageError } from '../../main/flags.ts'
import { closest } from '../../kube/words/index.ts'
import type { ServedResource } from '../../kube/index.ts'
import { ruleAllows, rulesAllow, type Deed } from '../../permissions/contract.ts'
import { isGranted, type FleetGrant } from './fleet.ts'
import { roleText, selectorText } from './words.ts'

/** What is asked: a deed, and where. */
export interface Question {
  readonly deed: Deed
  /** Undefined: in any namespace. */
  readonly namespace?: string | undefined
  /** Whether rights in a namespace can be enough. */
  readonly namespaced: boolean
}

export type Served = Pick<ServedResource, 'group' | 'plural' | 'kind' | 'namespaced'>

const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection']
const otherVerbs = ['impersonate', 'bind', 'escalate', 'approve', 'sign', 'use', 'attest', 'proxy', '*']

/** Reads `VERB RESOURCE`: `get pods`, `update deployments.apps`, `get pods/log`, `update deployments.apps/scale`, `get /metrics`. */
export const questionFrom = (
  [verb, word]: readonly [string, string],
  { name, namespace, served }: { name?: string; namespace?: string; served: readonly Served[] },
): Question & { readonly warning?: string } => {
  if (!/^(\*|[a-z]+)$/.test(verb))
    throw new UsageError(`${JSON.stringify(verb)} is not a verb; there are ${verbs.join(', ')}`)
  const near = [...verbs, ...otherVerbs].includes(verb) ? undefined : closest(verb, verbs)
  const warning = near === undefined ? {} : { warning: `verb ${verb} is not one that I know; did you mean ${near}?` }
  if (word.startsWith('/')) {
    if (namespace) throw new UsageError(`${word} is outside of namespaces: leave -n out`)
    return { deed: { verb, path: word }, namespaced: false, ...warning }
  }
  const [, plural = '', before = '', sub = '', after = ''] =
    /^([^./]+)(?:\.([^/]+))?(?:\/([^./]+)(?:\.(.+))?)?$/.exec(word) ?? []
  if (!plural || (before && after))
    throw new UsageError(
      `${JSON.stringify(word)} is not a resource; write pods, deployments.apps, pods/log, deployments.apps/scale or /metrics`,
    )
  const found = servedAs(plural, before || after, served)
  const resource = `${found.plural}${sub ? `/${sub}` : ''}`
  return {
    deed: { verb, group: found.group, resource, ...(name ? { name } : {}) },
    ...(namespace ? { namespace } : {}),
    // A Namespace is in itself, to RBAC: who has rights in it may read it.
    namespaced: found.namespaced || found.plural === 'namespaces',
    ...(found.warning ? { warning: found.warning } : warning),
  }
}

/** Which resource a word means, by what the hub serves. The clusters may serve more: then the word is taken as it is. */
const servedAs = (word: string, group: string, served: readonly Served[]): Served & { warning?: string } => {
  const plain = { kind: '', plural: word, namespaced: true }
  if (word === '*') return { ...plain, group: group || '*' }
  const lower = word.toLowerCase()
  const fits = served.filter(
    (one) => (one.plural === lower || one.kind.toLowerCase() === lower) && (!group || one.group === group),
  )
  // `events` is in the core group and in another; who does not say means the core one.
  const core = fits.find((one) => one.group === '')
  if (fits.length > 1 && !core)
    throw new UsageError(
      `${word} is in several API groups; write ${fits.map((one) => `${one.plural}.${one.group}`).join(' or ')}`,
    )
  const found = core ?? fits[0]
  if (found) return found
  if (group) return { ...plain, group }
  const near = closest(lower, [...new Set(served.map(({ plural }) => plural))])
  return {
    ...plain,
    group: '',
    warning: `the hub serves no ${word}: it is taken to be in the core group; write ${word}.GROUP for another one${near ? `, or did you mean ${near}?` : ''}`,
  }
}

/** Whether a grant is the answer: `yes`, for `some` objects or namespaces only, or `perhaps`, when only the cluster knows. */
export interface Answer {
  readonly can: 'yes' | 'some' | 'perhaps'
  readonly because?: string | undefined
}

/** Undefined when the grant does not allow it. */
export const answerOf = (grant: FleetGrant, { deed, namespace, namespaced }: Question): Answer | undefined => {
  const { place, rules } = grant
  if (!isGranted(grant)) return undefined
  if (place !== 'cluster') {
    if (!namespaced) return undefined
    if ('namespace' in place && namespace !== undefined && place.namespace !== namespace) return undefined
  }
  if (!rules) return { can: 'perhaps', because: `only cluster ${grant.cluster} knows what ${roleText(grant)} says` }
  const labels =
    place !== 'cluster' && 'namespaceSelector' in place && namespace !== undefined
      ? `if namespace ${namespace} has ${selectorText(place.namespaceSelector)}`
      : undefined
  if (rulesAllow(rules, deed)) return labels ? { can: 'some', because: labels } : { can: 'yes' }
  if (deed.name !== undefined) return undefined
  const named = rules.flatMap((rule) =>
    (rule.resourceNames ?? []).filter((name) => ruleAllows(rule, { ...deed, name })),
  )
  if (named.length === 0) return undefined
  return { can: 'some', because: [`only ${named.join(', ')}`, ...(labels ? [labels] : [])].join(', ') }
}
