import assert from 'node:assert/strict'
import { test } from 'node:test'
import { matchesSelector } from './match-labels.ts'
import type { LabelSelector } from './objects.ts'

const labels = { env: 'prod', region: 'eu', empty: '' }
const expression = (
  key: string,
  operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist',
  ...values: string[]
): LabelSelector => ({ matchExpressions: [{ key, operator, values }] })

const cases: [string, LabelSelector | undefined, boolean][] = [
  ['an absent selector selects nothing', undefined, false],
  ['an empty selector selects everything', {}, true],
  ['a label with the value', { matchLabels: { env: 'prod' } }, true],
  ['a label with another value', { matchLabels: { env: 'test' } }, false],
  ['one of two labels', { matchLabels: { env: 'prod', region: 'us' } }, false],
  ['an empty value is a value', { matchLabels: { empty: '' } }, true],
  ['an absent label has no empty value', { matchLabels: { zone: '' } }, false],
  ['a key that every JavaScript object has', expression('constructor', 'Exists'), false],
  ['In', expression('env', 'In', 'test', 'prod'), true],
  ['In, another value', expression('env', 'In', 'test'), false],
  ['In, absent', expression('zone', 'In', 'a'), false],
  ['NotIn', expression('env', 'NotIn', 'prod'), false],
  ['NotIn, absent', expression('zone', 'NotIn', 'a'), true],
  ['Exists', expression('region', 'Exists'), true],
  ['Exists, absent', expression('zone', 'Exists'), false],
  ['DoesNotExist', expression('region', 'DoesNotExist'), false],
  ['DoesNotExist, absent', expression('zone', 'DoesNotExist'), true],
  ['labels and expressions', { matchLabels: { env: 'prod' }, ...expression('region', 'In', 'us') }, false],
  ['an unknown operator', expression('env', 'Gt' as 'In', '1'), false],
]

for (const [what, selector, selected] of cases)
  test(`a label selector: ${what}`, () => assert.equal(matchesSelector(selector, labels), selected))

test('a label selector: an object without labels', () => {
  assert.equal(matchesSelector({}, undefined), true)
  assert.equal(matchesSelector({ matchLabels: { env: 'prod' } }, undefined), false)
})
