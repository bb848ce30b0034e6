import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chooseHub, sameHub, type Candidate, type HubQuestion } from './hubs.ts'

const address = (server: string, ca = 'CA') => ({
  source: server,
  server: `https://${server}`,
  ca,
  clusterEntry: 'hub',
})
const candidate = (name: string): Candidate => ({
  source: name,
  bootstrap: { kubeconfig: name },
  address: address(name),
})
const [one, two] = [candidate('one'), candidate('two')]
const question = (over: Partial<HubQuestion>): HubQuestion => ({
  candidates: [one, two],
  usable: false,
  failures: new Map(),
  now: 1_000_000,
  restMs: 600_000,
  ...over,
})
const chosen = (over: Partial<HubQuestion>): string => {
  const answer = chooseHub(question(over))
  return 'hub' in answer ? answer.hub.address.server : `missing: ${answer.missing}`
}
const failed = (at: number) => ({ reason: 'Denied', message: 'denied', at })

test('R1.17 the first hub in order is chosen, or the one that the credential is for', () => {
  assert.equal(chosen({}), 'https://one')
  assert.equal(chosen({ current: address('two') }), 'https://two')
  assert.equal(chosen({ current: address('three') }), 'https://one')
})

test('R1.17 a hub that failed is left alone for a while, also the one that the credential is for', () => {
  assert.equal(chosen({ failures: new Map([['one', failed(900_000)]]) }), 'https://two')
  assert.equal(chosen({ current: address('one'), failures: new Map([['one', failed(900_000)]]) }), 'https://two')
  assert.equal(chosen({ failures: new Map([['one', failed(1000)]]) }), 'https://one')
})

test('R1.17 when all have failed, the one that failed first is tried again', () => {
  const failures = new Map([
    ['one', failed(900_000)],
    ['two', failed(800_000)],
  ])
  assert.equal(chosen({ failures }), 'https://two')
})

test('R1.50 a broken bootstrap secret is passed over, and named when there is no other', () => {
  const broken: Candidate = { source: 'one', bootstrap: {}, problem: 'secret one has no kubeconfig' }
  assert.equal(chosen({ candidates: [broken, two] }), 'https://two')
  assert.equal(chosen({ candidates: [broken] }), 'missing: secret one has no kubeconfig')
})

test('R1.50 without any bootstrap secret a usable credential leads to its hub', () => {
  const gone: Candidate = { source: 'one', problem: 'it does not exist' }
  assert.equal(chosen({ candidates: [gone], current: address('old'), usable: true }), 'https://old')
  assert.equal(chosen({ candidates: [gone], current: address('old'), usable: false }), 'missing: it does not exist')
})

test('R1.50 another address or another CA is another hub', () => {
  assert.ok(sameHub(address('one'), { ...address('one'), source: 'elsewhere', clusterEntry: 'x' }))
  assert.ok(sameHub({ ...address('one'), server: 'https://one/' }, address('one')))
  assert.ok(!sameHub(address('one'), address('two')))
  assert.ok(!sameHub(address('one'), address('one', 'other CA')))
  assert.ok(!sameHub(undefined, address('one')))
})
