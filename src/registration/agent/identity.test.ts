import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { identityOf, isDnsLabel } from './identity.ts'

const clusterId = '0f9c7a50-8f5e-4c8e-9d1b-2f5f9f1e7a11'
const sources = { secret: {}, clusterId, random: Math.random }

test('R1.50 what a person chose comes first, then what was used before, then the id of the cluster', () => {
  const secret = { 'cluster-name': 'before', 'agent-name': 'abcde' }
  assert.deepEqual(identityOf({ ...sources, clusterName: 'chosen', agentName: 'mine', secret }), {
    cluster: 'chosen',
    agent: 'mine',
  })
  assert.deepEqual(identityOf({ ...sources, secret }), { cluster: 'before', agent: 'abcde' })
  assert.equal(identityOf(sources).cluster, clusterId)
})

test('R1.50 a secret with damaged names does not stop the agent', () => {
  const secret = { 'cluster-name': 'Not A Label', 'agent-name': '' }
  const { cluster, agent } = identityOf({ ...sources, secret })
  assert.equal(cluster, clusterId)
  assert.match(agent, /^[a-z0-9]{5}$/)
})

test('R1.16 a chosen name that is no DNS label is refused with the rule', () => {
  for (const clusterName of ['Upper', 'a.b', '-a', 'a-', 'a'.repeat(64), 'ä', 'a b'])
    assert.throws(
      () => identityOf({ ...sources, clusterName }),
      /cannot be the name of a managed cluster; use at most 63/,
    )
})

test('R1.50 the random name of an agent is always a DNS label', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), { minLength: 5, maxLength: 5 }),
      (numbers) => {
        let next = 0
        const { agent } = identityOf({ ...sources, random: () => numbers[next++]! })
        assert.ok(isDnsLabel(agent) && agent.length === 5, agent)
      },
    ),
  )
})
