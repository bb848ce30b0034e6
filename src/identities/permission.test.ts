import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allows, describeAllowed, type AllowedNamespaces } from './permission.ts'

const red = { name: 'red', labels: { team: 'red', env: 'prod' } }
const bare = { name: 'red' } // a namespace that nobody has seen

/** What is written, whether `red` may, and how it is told. */
const cases: [title: string, allowed: AllowedNamespaces | null, may: boolean, told: string][] = [
  ['absent: nobody', undefined, false, 'no namespace'],
  ['null: nobody', null, false, 'no namespace'],
  ['{}: everybody', {}, true, 'all namespaces'],
  ['what Go stores for {}: everybody', { list: null, selector: {} }, true, 'all namespaces'],
  ['{list: null}: everybody', { list: null }, true, 'all namespaces'],
  ['an empty list: nobody', { list: [] }, false, 'no namespace'],
  ['an empty list and an empty selector: nobody', { list: [], selector: {} }, false, 'no namespace'],
  ['a list with it', { list: ['blue', 'red'] }, true, 'namespaces blue, red'],
  ['a list without it', { list: ['blue'] }, false, 'namespaces blue'],
  ['a list knows no patterns', { list: ['re*', '*', 'Red'] }, false, 'namespaces re*, *, Red'],
  ['a selector that is empty, stored by somebody else: nobody', { selector: {} }, false, 'no namespace'],
  ['R3.16 empty matchLabels: nobody', { selector: { matchLabels: {} } }, false, 'no namespace'],
  ['labels that match', { selector: { matchLabels: { team: 'red' } } }, true, 'namespaces labelled team=red'],
  [
    'all labels must match',
    { selector: { matchLabels: { team: 'red', env: 'test' } } },
    false,
    'namespaces labelled team=red and env=test',
  ],
  [
    'labels and expressions together',
    {
      selector: {
        matchLabels: { team: 'red' },
        matchExpressions: [{ key: 'env', operator: 'NotIn', values: ['prod'] }],
      },
    },
    false,
    'namespaces labelled team=red and env NotIn (prod)',
  ],
  [
    'either list or selector is enough',
    { list: ['blue'], selector: { matchExpressions: [{ key: 'team', operator: 'Exists' }] } },
    true,
    'namespaces blue, and namespaces labelled team Exists',
  ],
]

for (const [title, allowed, may, told] of cases)
  test(`R3.12 R3.13 R3.14 R3.15 R3.16 allowedNamespaces, ${title}`, () => {
    assert.equal(allows(allowed, red), may)
    assert.equal(describeAllowed(allowed), told)
  })

test('R3.62 a namespace that is not known matches no selector, not even one for labels that are absent', () => {
  const absent = { selector: { matchExpressions: [{ key: 'team', operator: 'DoesNotExist' as const }] } }
  assert.equal(allows(absent, bare), false)
  assert.equal(allows(absent, { name: 'red', labels: {} }), true)
  assert.equal(allows({ list: ['red'] }, bare), true)
})
