import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { describeChain, recipeKey, type AssumeRole, type Recipe } from './recipe.ts'

// Few and awkward words, so that different recipes come close to each other.
const word = fc.constantFrom('', 'a', 'a-team', 'team', 'prod', 'prod-a', '","', '[]', 'null', '0', '\\', '"')
const reference = fc.record({ namespace: word, name: word }, { noNullPrototype: true })
const words = fc.uniqueArray(word, { maxLength: 2 })
const optional = { requiredKeys: [] as [], noNullPrototype: true }
const required = fc.record({ arn: word, sessionName: word, region: word }, { noNullPrototype: true })
const limits = fc.record(
  { durationSeconds: fc.constantFrom(0, 900, 3600), inlinePolicy: word, policyArns: words },
  optional,
)
const extras = fc.record(
  {
    externalId: word,
    tags: fc.dictionary(word, word, { maxKeys: 2, noNullPrototype: true }),
    transitiveTagKeys: words,
  },
  optional,
)
const role: fc.Arbitrary<AssumeRole> = fc.tuple(required, limits, extras).map(([a, b, c]) => ({ ...a, ...b, ...c }))

const { recipe } = fc.letrec<{ recipe: Recipe }>((tie) => ({
  recipe: fc.oneof(
    { depthSize: 'small' },
    fc.constant<Recipe>({ kind: 'controller' }),
    reference.map((secret): Recipe => ({ kind: 'static', secret })),
    fc
      .tuple(required, limits, reference, words, fc.constantFrom(undefined, 600))
      .map(([a, b, account, audiences, expirationSeconds]): Recipe => ({
        kind: 'serviceAccount',
        role: { ...a, ...b },
        account,
        audiences,
        expirationSeconds,
      })),
    fc.tuple(role, tie('recipe')).map(([role, source]): Recipe => ({ kind: 'role', role, source })),
  ),
}))

/** What two recipes have in common if they lead to the same credentials: nothing missing, nothing in another order. */
const effect = (recipe: Recipe): unknown => {
  const sorted = (list: readonly string[] | undefined) => (list ?? []).toSorted()
  const of = (r: AssumeRole) => ({
    durationSeconds: undefined,
    externalId: undefined,
    inlinePolicy: undefined,
    ...r,
    policyArns: sorted(r.policyArns),
    transitiveTagKeys: sorted(r.transitiveTagKeys),
    tags: { ...r.tags },
  })
  if (recipe.kind === 'role') return { kind: 'role', role: of(recipe.role), source: effect(recipe.source) }
  if (recipe.kind === 'serviceAccount') return { ...recipe, role: of(recipe.role), audiences: sorted(recipe.audiences) }
  return recipe
}

test('R3.41 two recipes have the same key exactly if they lead to the same credentials', () => {
  fc.assert(
    fc.property(recipe, recipe, (a, b) => {
      assert.equal(recipeKey(a) === recipeKey(b), isDeepStrictEqual(effect(a), effect(b)))
    }),
    { numRuns: 5000 },
  )
})

test('R3.41 the order of policies, tags and audiences makes no difference', () => {
  const reversed = (recipe: Recipe): Recipe => {
    if (recipe.kind === 'role') {
      const { policyArns, tags, transitiveTagKeys, ...role } = recipe.role
      const again = {
        ...role,
        policyArns: policyArns?.toReversed(),
        tags: tags && Object.fromEntries(Object.entries(tags).toReversed()),
        transitiveTagKeys: transitiveTagKeys?.toReversed(),
      }
      return { kind: 'role', role: again, source: reversed(recipe.source) }
    }
    return recipe.kind === 'serviceAccount' ? { ...recipe, audiences: recipe.audiences.toReversed() } : { ...recipe }
  }
  fc.assert(
    fc.property(recipe, (a) => assert.equal(recipeKey(reversed(a)), recipeKey(a))),
    { numRuns: 2000 },
  )
})

test('R3.41 any change to any part of a recipe changes its key', () => {
  const base: AssumeRole = {
    arn: 'arn:aws:iam::111111111111:role/a',
    sessionName: 's',
    region: 'eu-west-1',
    durationSeconds: 900,
    externalId: 'x',
    inlinePolicy: '{}',
    policyArns: ['p'],
    tags: { a: 'b' },
    transitiveTagKeys: ['a'],
  }
  const changes: Partial<AssumeRole>[] = [
    { arn: 'arn:aws:iam::111111111111:role/b' },
    { sessionName: 't' },
    { region: 'eu-west-2' },
    { durationSeconds: undefined },
    { externalId: '' },
    { inlinePolicy: undefined },
    { policyArns: ['p', 'q'] },
    { tags: { a: 'c' } },
    { tags: { b: 'b' } },
    { transitiveTagKeys: [] },
  ]
  const key = (role: AssumeRole, source: Recipe = { kind: 'controller' }) => recipeKey({ kind: 'role', role, source })
  const keys = [base, ...changes.map((change) => ({ ...base, ...change }))].map((role) => key(role))
  keys.push(key(base, { kind: 'static', secret: { namespace: 'a', name: 'b' } }))
  assert.equal(new Set(keys).size, keys.length)
})

test('R3.41 names that run together when joined stay apart', () => {
  const of = (namespace: string, name: string): Recipe => ({ kind: 'static', secret: { namespace, name } })
  assert.notEqual(recipeKey(of('team', 'prod-a')), recipeKey(of('a-team', 'prod')))
  assert.notEqual(recipeKey(of('prod-a', 'team')), recipeKey(of('prod', 'a-team')))
})

test('a chain is told from the role that is used back to where it begins', () => {
  const role = (name: string, source: Recipe): Recipe => ({
    kind: 'role',
    source,
    role: { arn: `arn:aws:iam::111111111111:role/${name}`, sessionName: 's', region: 'eu-west-1' },
  })
  assert.equal(
    describeChain(role('b', role('a', { kind: 'static', secret: { namespace: 'capa', name: 'keys' } }))),
    'role arn:aws:iam::111111111111:role/b ← role arn:aws:iam::111111111111:role/a ← the access key in secret capa/keys',
  )
})
