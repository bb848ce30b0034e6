import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { add, formatQuantity, parseQuantity, sameQuantity, sum } from './quantity.ts'

const shown = (text: string): string => formatQuantity(parseQuantity(text)!)

test('R1.51 amounts are written as Kubernetes writes them', () => {
  const forms: [given: string, canonical: string][] = [
    ['0', '0'],
    ['4', '4'],
    ['4000', '4k'],
    ['1500m', '1500m'],
    ['1000m', '1'],
    ['0.5', '500m'],
    ['.5', '500m'],
    ['5.', '5'],
    ['1e3', '1k'],
    ['1E3', '1k'],
    ['15e-1', '1500m'],
    ['2E', '2E'],
    ['16374452Ki', '16374452Ki'],
    ['1024Ki', '1Mi'],
    ['1.5Gi', '1536Mi'],
    ['0.5Ki', '512'],
    ['1.2Ki', '1228800m'],
    ['100n', '100n'],
    ['0.1n', '1n'],
    ['-2Gi', '-2Gi'],
    ['+3', '3'],
    ['123456Ei', '123456Ei'],
  ]
  for (const [given, canonical] of forms) assert.equal(shown(given), canonical, given)
})

test('R1.51 what is no amount is left out of the sum', () => {
  for (const text of ['', '.', '1.2.3', 'four', '1 Gi', '1Kb', '0x10', '1e', '--1'])
    assert.equal(parseQuantity(text), undefined, text)
  assert.deepEqual(sum([{ cpu: '4', memory: 'much' }, { cpu: '500m' }]), { cpu: '4500m' })
})

test('R1.51 a fleet of nodes is summed without rounding', () => {
  const nodes = Array.from({ length: 5000 }, () => ({
    memory: '16374452Ki',
    'ephemeral-storage': '9007199254740993',
    cpu: '1m',
  }))
  assert.deepEqual(sum(nodes), {
    memory: '81872260000Ki',
    'ephemeral-storage': '45035996273704965k',
    cpu: '5',
  })
})

const suffix = fc.constantFrom(
  '',
  'n',
  'u',
  'm',
  'k',
  'M',
  'G',
  'T',
  'P',
  'E',
  'Ki',
  'Mi',
  'Gi',
  'Ti',
  'Pi',
  'Ei',
  'e3',
  'E-2',
)
const text = fc.tuple(fc.bigInt({ min: -(10n ** 24n), max: 10n ** 24n }), suffix).map(([n, s]) => `${n}${s}`)

test('R1.51 writing and reading an amount changes nothing', () => {
  fc.assert(
    fc.property(text, (given) => {
      const read = parseQuantity(given)!
      const again = parseQuantity(formatQuantity(read))!
      assert.equal(again.nano, read.nano)
      assert.equal(formatQuantity(again), formatQuantity(read))
      assert.ok(sameQuantity(given, formatQuantity(read)))
    }),
  )
})

test('R1.51 the order of nodes does not change the sum', () => {
  fc.assert(
    fc.property(text, text, text, (a, b, c) => {
      const [x, y, z] = [a, b, c].map((t) => parseQuantity(t)!)
      assert.equal(add(add(x!, y!), z!).nano, add(z!, add(y!, x!)).nano)
    }),
  )
})
