import { createHash } from 'node:crypto'
import { group, type PermissionSpec } from '../../api/index.ts'
import { mayAccess, SubjectAccessReview, type Api, type PolicyRule, type Requester } from '../../kube/index.ts'
import { inParallel } from '../../runtime/index.ts'
import { bindingsOf, nameOfRef } from '../bindings.ts'
import { verb } from '../contract.ts'
import { describeDeed, distinctDeeds, type Deed } from '../rules.ts'
import type { CopiedRole } from './hub-roles.ts'

/** What somebody must be allowed to give, for a permission to be theirs to write. */
export interface Demand {
  /** Rules in the permission itself. */
  readonly written: readonly PolicyRule[]
  /** Rules of roles that others wrote, on the hub. */
  readonly copied: readonly PolicyRule[]
  /** Roles that only the managed cluster knows. */
  readonly unseen: readonly string[]
}

export const demandOf = (name: string, spec: PermissionSpec, copies: readonly CopiedRole[]): Demand => ({
  written: [...(spec.clusterRole?.rules ?? []), ...(spec.roles ?? []).flatMap(({ rules }) => rules)],
  copied: copies.flatMap(({ rules }) => rules),
  unseen: bindingsOf(name, spec)
    .filter(({ source }) => source === 'managed')
    .map(({ role }) => nameOfRef(role)),
})

/** A fingerprint of all that a permission gives. Whoever approves it approves this and nothing else. */
export const fingerprint = (
  spec: PermissionSpec,
  copies: readonly CopiedRole[],
  set?: { clusterSet: string },
): string => {
  const rules = copies.map(({ ref, rules: of }) => [nameOfRef(ref), of])
  return createHash('sha256')
    .update(canonical([spec, rules, set?.clusterSet ?? null]))
    .digest('hex')
    .slice(0, 32)
}

// The order of keys says nothing: clients and servers sort them as they like.
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )

/** The permission that somebody wants to write, as the hub's RBAC sees it. */
export interface Target {
  readonly resource: 'clusterpermissions' | 'clustersetpermissions'
  readonly namespace?: string | undefined
  readonly name: string
  /** For all clusters of a set: the writer must be allowed to use it. */
  readonly clusterSet?: string | undefined
}

/** More questions than this are not asked for one permission. */
export const mostQuestions = 1000
const mostNamed = 5

/**
 * What somebody lacks to give all that is demanded, in words; empty when they may. They may with the verbs of this API, or
 * by holding the rules themselves on the hub, in all namespaces: what they hold in one namespace of the hub says nothing
 * about a managed cluster.
 */
export const lackOf = async (
  client: Pick<Api, 'of'>,
  who: Requester,
  target: Target,
  demand: Demand,
  signal: AbortSignal,
): Promise<string[]> => {
  const { resource, namespace, name, clusterSet } = target
  const may = (of: string): Promise<boolean> =>
    mayAccess(client, who, { verb: of, group: group.rbac, resource, namespace, name }, { signal })
  const useSet = { verb: 'create', group: group.cluster, resource: 'managedclustersets', subresource: 'bind' }
  const setAllowed =
    clusterSet === undefined || (await mayAccess(client, who, { ...useSet, name: clusterSet }, { signal }))
  const lacksSet = setAllowed ? [] : [`use set ${clusterSet} (verb create on managedclustersets/bind)`]

  const hasRules = demand.written.length > 0 || demand.copied.length > 0
  const escalates = hasRules && (await may(verb.escalate))
  const needsBind = demand.unseen.length > 0 || (demand.copied.length > 0 && !escalates)
  const binds = needsBind && (await may(verb.bind))
  const unseen = binds
    ? []
    : demand.unseen.map((role) => `bind ${role}, which only the managed cluster knows (verb bind)`)
  const rules = escalates ? [] : [...demand.written, ...(binds ? [] : demand.copied)]
  return [...lacksSet, ...unseen, ...(await notHeld(client, who, rules, signal))]
}

/** What somebody does not hold of the rules. Stars are asked for as such: who holds every verb there is today does not hold `*`. */
const notHeld = async (
  client: Pick<Api, 'of'>,
  who: Requester,
  rules: readonly PolicyRule[],
  signal: AbortSignal,
): Promise<string[]> => {
  const deeds = distinctDeeds(rules)
  if (deeds.length > mostQuestions)
    return [
      `give ${deeds.length} single rights, of which more than ${mostQuestions} cannot be compared with what they hold (verb escalate, or fewer rules)`,
    ]
  const lacking = new Set<Deed>()
  let asked = 0
  await inParallel(
    16,
    deeds.map((deed) => async () => {
      // Enough is known to refuse it.
      if (lacking.size > mostNamed) return
      asked++
      if (!(await mayDo(client, who, deed, signal))) lacking.add(deed)
    }),
  )
  // In the order in which they were written, whichever answer came first: the same request gets the same words.
  const named = deeds
    .filter((deed) => lacking.has(deed))
    .slice(0, mostNamed)
    .map(describeDeed)
  return asked < deeds.length || lacking.size > mostNamed ? [...named, 'and more'] : named
}

const mayDo = async (client: Pick<Api, 'of'>, who: Requester, deed: Deed, signal: AbortSignal): Promise<boolean> => {
  if (deed.path === undefined) {
    const [resource = '', subresource] = deed.resource!.split('/')
    return mayAccess(client, who, { ...deed, resource, subresource }, { signal })
  }
  const { username: user, ...rest } = who
  const spec = { user, ...rest, nonResourceAttributes: { path: deed.path, verb: deed.verb } }
  const { status } = await client.of(SubjectAccessReview).create({ metadata: {}, spec }, { signal })
  return status?.allowed === true
}

/** Why somebody may not write a permission, and what to do. */
export const refusalOf = (who: Requester, { resource, namespace, name }: Target, lacks: readonly string[]): string =>
  `user ${JSON.stringify(who.username)} may not give more than they hold on the hub in all namespaces: they may not ${lacks.join(', ')}; ` +
  `ask an administrator for the verbs ${verb.escalate} and ${verb.bind} on ${resource} of ${group.rbac}${namespace ? ` in namespace ${namespace}` : ''}, for the name ${name}, or for these rights`
