import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { label, type ManagedClusterSet } from '../../api/index.ts'
import { matchesSelector, type LabelSelector } from '../../kube/index.ts'
import { ClusterSetMembers } from './cluster-set-members.ts'

const names = ['s1', 's2', 's3', 's4']
const clusters = ['c1', 'c2', 'c3', 'c4', 'c5']

const labels = fc.dictionary(fc.constantFrom('env', 'region', label.clusterSet), fc.constantFrom('a', 'b', 's1', 's2'))
const selector: fc.Arbitrary<LabelSelector | undefined> = fc.constantFrom<(LabelSelector | undefined)[]>(
  undefined,
  {},
  { matchLabels: { env: 'a' } },
  { matchExpressions: [{ key: 'region', operator: 'NotIn', values: ['a'] }] },
)
const operation = fc.oneof(
  fc.record({ put: fc.constantFrom(...clusters), labels }),
  fc.record({ drop: fc.constantFrom(...clusters) }),
  fc.record({
    set: fc.constantFrom(...names),
    type: fc.constantFrom('LabelSelector' as const, 'ExclusiveClusterSetLabel' as const),
    selector,
  }),
  fc.record({ dropSet: fc.constantFrom(...names) }),
)

const setOf = (
  name: string,
  selectorType: 'LabelSelector' | 'ExclusiveClusterSetLabel',
  labelSelector: LabelSelector | undefined,
): ManagedClusterSet => ({ metadata: { name }, spec: { clusterSelector: { selectorType, labelSelector } } })

test('after any changes of clusters and sets the counts are those of a full search, and every changed set was named', () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
      const members = new ClusterSetMembers()
      const present = new Map<string, Record<string, string>>()
      const sets = new Map<string, ManagedClusterSet>()
      const search = (name: string): number => {
        const by = sets.get(name)!.spec!.clusterSelector!
        const all = [...present.values()]
        return by.selectorType === 'LabelSelector'
          ? all.filter((of) => matchesSelector(by.labelSelector, of)).length
          : all.filter((of) => of[label.clusterSet] === name).length
      }
      for (const one of operations) {
        const before = new Map([...sets.keys()].map((name) => [name, members.countIn(name)]))
        let changed: string[] | undefined
        if ('put' in one) {
          present.set(one.put, one.labels)
          changed = members.putCluster(one.put, one.labels)
        } else if ('drop' in one) {
          present.delete(one.drop)
          changed = members.removeCluster(one.drop)
        } else if ('set' in one) {
          sets.set(one.set, setOf(one.set, one.type, one.selector))
          members.putSet(sets.get(one.set)!)
        } else {
          sets.delete(one.dropSet)
          members.removeSet(one.dropSet)
        }
        for (const name of sets.keys()) {
          assert.equal(members.countIn(name), search(name))
          if (changed && members.countIn(name) !== before.get(name)) assert.ok(changed.includes(name))
        }
      }
    }),
  )
})
