import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  eventually,
  rounds,
  seededRandom,
  startControlPlane,
  type ControlPlane,
  type Random,
} from '../../testkit/index.ts'
import { ClusterRole, ClusterRoleBinding, isForbidden, mayAccess, type Client, type PolicyRule } from '../kube/index.ts'
import { inParallel } from '../runtime/index.ts'
import { covers, deedsOf, describeDeed, distinctDeeds, ruleAllows, ruleFault, rulesAllow, uncovered } from './rules.ts'

let plane: ControlPlane
let admin: Client
before(async () => {
  plane = await startControlPlane({ controllerManager: false, audit: false })
  admin = plane.client()
})
after(() => plane.stop())

const rule = (verbs: string[], apiGroups: string[], resources: string[], resourceNames?: string[]): PolicyRule => ({
  verbs,
  apiGroups,
  resources,
  ...(resourceNames ? { resourceNames } : {}),
})

test('R4.3 a rule covers what it says and what its stars stand for, and halves of two rules do not add up', () => {
  const pods = rule(['get', 'list'], [''], ['pods'])
  assert.ok(covers([pods], [rule(['get'], [''], ['pods'], ['a'])]))
  assert.ok(!covers([rule(['get'], [''], ['pods'], ['a'])], [rule(['get'], [''], ['pods'])]), 'a name is not all names')
  assert.ok(!covers([pods], [rule(['get'], [''], ['pods/log'])]), 'a resource is not its subresources')
  assert.ok(covers([rule(['get'], ['*'], ['*/log'])], [rule(['get'], [''], ['pods/log'])]))
  assert.ok(
    !covers([rule(['get', 'create', 'delete'], [''], ['pods'])], [rule(['*'], [''], ['pods'])]),
    'many verbs are not *',
  )
  assert.ok(!covers([rule(['get'], [''], ['pods']), rule(['list'], ['apps'], ['*'])], [rule(['list'], [''], ['pods'])]))
  const url = (...nonResourceURLs: string[]): PolicyRule => ({ verbs: ['get'], nonResourceURLs })
  assert.ok(covers([url('/metrics*')], [url('/metrics', '/metrics/x', '/metrics/*')]))
  assert.ok(!covers([url('/metrics')], [url('/metrics/x')]))
  assert.ok(!covers([url('/*/x')], [url('/a/x')]), 'only a star at the end stands for anything')
  assert.deepEqual(uncovered([pods], [rule(['get', 'delete'], [''], ['pods', 'secrets'])]).map(describeDeed), [
    'get secrets',
    'delete pods',
    'delete secrets',
  ])
})

test('R4.3 what one question includes is not asked twice', () => {
  const deeds = distinctDeeds([
    rule(['get', 'get', '*'], [''], ['pods', 'pods/log']),
    rule(['get'], [''], ['pods']),
    { verbs: ['get'], nonResourceURLs: ['/a', '/a*'] },
  ])
  assert.deepEqual(deeds.map(describeDeed).toSorted(), ['* pods', '* pods/log', 'get /a*'])
})

test('R4.27 a rule that no API server would take is named with what to do', () => {
  const fault = (of: PolicyRule, namespaced = false) => ruleFault(of, { namespaced })?.field
  assert.equal(fault(rule([], [''], ['pods'])), '.verbs')
  assert.equal(fault(rule(['get'], [], ['pods'])), '.apiGroups')
  assert.equal(fault(rule(['get'], [''], [])), '.resources')
  assert.equal(fault({ verbs: ['get'], nonResourceURLs: ['/x'] }, true), '.nonResourceURLs')
  assert.equal(fault({ ...rule(['get'], [''], ['pods']), nonResourceURLs: ['/x'] }), '.nonResourceURLs')
  assert.equal(fault({ verbs: ['get'], nonResourceURLs: ['/x'] }), undefined)
})

/** Who has this may write any rule: the API server compares nothing then. */
const escalate = { verb: 'escalate', group: 'rbac.authorization.k8s.io', resource: 'clusterroles' }

const some = <T>(random: Random, from: readonly T[], most: number): T[] =>
  Array.from({ length: 1 + random.below(most) }, () => random.pick(from))

const anyRule = (random: Random): PolicyRule => {
  const verbs = some(random, ['get', 'list', 'update', '*'], 2)
  if (random.below(5) === 0) return { verbs, nonResourceURLs: some(random, ['/a', '/a/b', '/a/*', '/a*', '*', '/'], 2) }
  return {
    verbs,
    apiGroups: some(random, ['', 'apps', '*'], 2),
    resources: some(random, ['pods', 'pods/log', '*/log', 'secrets', '*', 'deployments'], 2),
    ...(random.below(3) === 0 ? { resourceNames: some(random, ['x', 'y'], 2) } : {}),
  }
}

/** A rule within another one, mostly. */
const partOf = (
  random: Random,
  { verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule,
): PolicyRule => {
  const one = (of: readonly string[], instead: string): string[] => {
    const picked = random.pick(of)
    return [picked === '*' && random.below(2) ? instead : picked]
  }
  const narrowed = { verbs: one(verbs, 'delete') }
  if (nonResourceURLs) return { ...narrowed, nonResourceURLs: one(nonResourceURLs, '/a/b/c') }
  return {
    ...narrowed,
    apiGroups: one(apiGroups!, 'batch'),
    resources: one(resources!, 'jobs/log'),
    ...(resourceNames ? { resourceNames: one(resourceNames, 'x') } : random.below(3) ? {} : { resourceNames: ['z'] }),
  }
}

test('R4.3 property: what is covered is what a real API server lets its holder write into a role, and answers in reviews', async (t) => {
  const random = seededRandom(t)
  const user = 'holder'
  const holder = plane.client({ user })
  const roles = admin.of(ClusterRole)
  const bind = (name: string) =>
    admin.of(ClusterRoleBinding).create({
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: user }],
    })
  const writer: PolicyRule = rule(['create'], ['rbac.authorization.k8s.io'], ['clusterroles'])
  await roles.create({ metadata: { name: 'writer' }, rules: [writer] })
  await roles.create({ metadata: { name: 'held' }, rules: [] })
  await Promise.all([bind('writer'), bind('held')])
  let [yes, no] = [0, 0]
  for (let round = 0; round < rounds(12); round++) {
    // A marker tells when the authorizer has seen the new rules.
    const marker = `round-${round}`
    const own = [...some(random, [0, 1, 2], 3).map(() => anyRule(random)), rule(['get'], ['marker'], [marker])]
    const { metadata } = await roles.get('held')
    await roles.update({ metadata, rules: own })
    await eventually(() => mayAccess(admin, { username: user }, { verb: 'get', group: 'marker', resource: marker }))
    // Everybody who is authenticated may look at these.
    const held = [...own, writer, ...(await everybodys())]
    const wanted = Array.from({ length: 25 }, () =>
      some(random, [0, 1], 2).map(() => (random.below(3) ? partOf(random, random.pick(own)) : anyRule(random))),
    )
    await inParallel(
      8,
      wanted.map((rules) => async () => {
        const stored = await holder
          .of(ClusterRole)
          .create({ metadata: { generateName: 'wanted-' }, rules }, { dryRun: true })
          .then(() => true)
          .catch((error: unknown) => {
            if (isForbidden(error)) return false
            throw error
          })
        const what = JSON.stringify({ own, rules })
        assert.equal(covers(held, rules) || rulesAllow(held, escalate), stored, what)
        for (const deed of rules.flatMap(deedsOf).filter(({ path }) => path === undefined)) {
          const [resource = '', subresource] = deed.resource!.split('/')
          const allowed = await mayAccess(
            admin,
            { username: user, groups: ['system:authenticated'] },
            { verb: deed.verb, group: deed.group, resource, subresource, name: deed.name },
          )
          assert.equal(rulesAllow(held, deed), allowed, `${describeDeed(deed)} of ${what}`)
        }
        if (stored) yes++
        else no++
      }),
    )
  }
  t.diagnostic(`${yes} covered, ${no} not`)
  assert.ok(yes > 20 && no > 20, `${yes} covered, ${no} not: the choice is too narrow to show anything`)
  assert.ok(!ruleAllows(writer, { verb: '*', group: 'rbac.authorization.k8s.io', resource: 'clusterroles' }))
})

const everybodys = async (): Promise<PolicyRule[]> => {
  const { items: bindings } = await admin.of(ClusterRoleBinding).list()
  const names = bindings
    .filter(({ subjects }) => subjects?.some(({ name }) => name === 'system:authenticated'))
    .map(({ roleRef }) => roleRef.name)
  const found = await Promise.all(names.map((name) => admin.of(ClusterRole).get(name)))
  return found.flatMap(({ rules }) => rules ?? [])
}
