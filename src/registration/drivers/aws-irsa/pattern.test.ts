import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rounds, seededRandom } from '../../../../testkit/index.ts'
import { parsePattern } from './pattern.ts'

const arn = 'arn:aws:eks:us-west-2:123456789012:cluster/prod-1'

test('R1.39 a pattern approves an ARN only if it matches all of it', () => {
  const cases: [pattern: string, matches: boolean][] = [
    [arn, true],
    ['arn:aws:eks:us-west-2:123456789012:cluster/.*', true],
    ['^arn:aws:eks:us-west-2:123456789012:cluster/.*$', true],
    ['arn:aws:eks:.*:(123456789012|210987654321):cluster/[a-z]+-\\d+', true],
    ['arn:aws(?:-cn|-us-gov)?:eks:[a-z]{2}-[a-z]+-[0-9]:\\d{12}:cluster/\\w+-1', true],
    ['.*', true],
    ['*', true],
    ['arn:aws:eks', false],
    ['cluster/prod-1', false],
    ['arn:aws:eks:us-west-2:123456789012:cluster/prod', false],
    ['arn:aws:eks:us-west-2:123456789013:cluster/.*', false],
    ['|arn', false],
  ]
  for (const [pattern, matches] of cases) assert.equal(parsePattern(pattern).matches(arn), matches, pattern)
})

test('R1.39 patterns that would need backtracking, or mean nothing, are refused with what to write', () => {
  const bad = ['', '(', ')', 'a)', '[a', '*a', '\\1', '(?=a)', '(?i)a', 'a^b', 'a$b', '[z-a]', 'a{3,1}', '\\q']
  for (const pattern of bad)
    assert.throws(() => parsePattern(pattern), /the pattern .* cannot be used: .*; (write|use) /, pattern)
  assert.throws(() => parsePattern('(((a{99}){99}){99}){99}'), /too large/)
})

test('R1.39 hostile ARNs and patterns take no longer than others: work grows with the length alone', () => {
  const pattern = parsePattern('(a+)+(a|a)*(.*.*.*=)?b')
  assert.equal(pattern.matches('a'.repeat(2000)), false)
  assert.equal(pattern.matches('a'.repeat(2000) + 'b'), true)
  assert.equal(pattern.matches('a'.repeat(5000) + 'b'), false) // no ARN is that long
})

test('R1.39 the matcher agrees with the engine of JavaScript on small expressions', (t) => {
  const random = seededRandom(t)
  const atoms = ['a', 'b', '.', '[ab]', '[^a]', '(a|b)', '(?:ab)', '\\d', '1', '(a|)']
  const quantifiers = ['', '', '', '*', '+', '?', '{2}', '{1,2}', '{0,}']
  const part = (): string => random.pick(atoms) + random.pick(quantifiers)
  for (let round = 0; round < rounds(400); round++) {
    const source = Array.from({ length: 1 + random.below(4) }, part).join(random.next() < 0.2 ? '|' : '')
    const text = Array.from({ length: random.below(7) }, () => random.pick(['a', 'b', '1'])).join('')
    const expected = new RegExp(`^(?:${source})$`, 's').test(text)
    assert.equal(parsePattern(source).matches(text), expected, `${source} on ${text}`)
  }
})
