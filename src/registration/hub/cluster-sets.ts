import { isDeepStrictEqual } from 'node:util'
import { ManagedClusterSet } from '../../api/index.ts'
import { isAlreadyExists } from '../../kube/index.ts'
import { findCondition, setConditions, watching, type Informer, type Reconcile } from '../../runtime/index.ts'
import { clusterSet, Empty } from '../contract.ts'
import { ClusterSetMembers } from './cluster-set-members.ts'
import type { Hub } from './hub.ts'

/** How often a number in a message may change: while a thousand clusters arrive, nobody reads each of them. */
const countEveryMs = 1000

/** Keeps the sets `default` and `global`, and says of each set how many clusters it has. */
export const clusterSets = (hub: Hub): void => {
  const sets = hub.manager.informer(ManagedClusterSet)
  const members = new ClusterSetMembers()
  const writtenAt = new Map<string, number>()
  if (hub.settings.gates.defaultClusterSet) keepOwnSets(hub, sets)

  // Compared to the letter: an absent selector selects nothing and an empty one everything.
  // These come before the controller's own handlers, so that it finds the counts as they are.
  sets.on({
    added: (set) => members.putSet(set),
    updated: (set, old) => isDeepStrictEqual(set.spec, old.spec) || members.putSet(set),
    deleted: (set) => members.removeSet(set.metadata.name!),
  })

  const reconcile: Reconcile = async (name, signal) => {
    const set = sets.get(name)
    if (!set) {
      writtenAt.delete(name)
      return {}
    }
    const count = members.countIn(name)
    const state = count ? Empty.no(`${count} ManagedClusters selected`) : Empty.yes()
    const { generation, uid, resourceVersion } = set.metadata
    const now = hub.clock.now()
    const present = set.status?.conditions
    const conditions = setConditions(present, [state], { now, generation })
    if (conditions === present) return {}
    const sameStatus = findCondition(set, Empty.type)?.status === state.status
    const wait = (writtenAt.get(name) ?? 0) + countEveryMs - now
    if (sameStatus && wait > 0) return { requeueAfterMs: wait }
    const change = { metadata: { uid, resourceVersion }, status: { conditions } }
    await hub.client
      .of(ManagedClusterSet)
      .patch(name, { merge: change }, { subresource: 'status', fieldManager: 'lanyard', signal })
    writtenAt.set(name, now)
    return {}
  }

  const controller = hub.manager.controller({
    name: 'cluster-sets',
    reconcile,
    watches: [
      watching(
        sets,
        undefined,
        (set, old) => !old || !isDeepStrictEqual(set.spec, old.spec) || !isDeepStrictEqual(set.status, old.status),
      ),
    ],
  })
  const enqueue = (names: string[]): void => names.forEach((name) => controller.enqueue(name))
  hub.clusters.on({
    added: ({ metadata }) => enqueue(members.putCluster(metadata.name!, metadata.labels)),
    updated: ({ metadata }, old) => {
      if (!isDeepStrictEqual(metadata.labels, old.metadata.labels))
        enqueue(members.putCluster(metadata.name!, metadata.labels))
    },
    deleted: ({ metadata }) => enqueue(members.removeCluster(metadata.name!)),
  })
}

type Selector = NonNullable<NonNullable<ManagedClusterSet['spec']>['clusterSelector']>

/** The sets that are ours to keep, and whom they select. */
export const ownSets: Record<string, Selector> = {
  [clusterSet.default]: { selectorType: 'ExclusiveClusterSetLabel' },
  [clusterSet.global]: { selectorType: 'LabelSelector', labelSelector: {} },
}

/** A set of ours that is deleted or edited comes back; what else is in its spec is left to whoever wrote it. */
const keepOwnSets = (hub: Hub, sets: Informer<ManagedClusterSet>): void => {
  const reconcile: Reconcile = async (name, signal) => {
    const clusterSelector = ownSets[name]
    const present = sets.get(name)
    if (!clusterSelector || present?.metadata.deletionTimestamp) return {} // its end is an event of its own
    const client = hub.client.of(ManagedClusterSet)
    if (!present) {
      await client
        .create({ metadata: { name }, spec: { clusterSelector } }, { fieldManager: 'lanyard', signal })
        .catch((error: unknown) => {
          if (!isAlreadyExists(error)) throw error
        })
    } else if (!isDeepStrictEqual(present.spec?.clusterSelector, clusterSelector)) {
      await client.update(
        { ...present, spec: { ...present.spec, clusterSelector } },
        { fieldManager: 'lanyard', signal },
      )
    }
    return {}
  }
  const controller = hub.manager.controller({
    name: 'own-cluster-sets',
    workers: 1,
    reconcile,
    watches: [watching(sets, undefined, ({ metadata }) => Object.hasOwn(ownSets, metadata.name!))],
  })
  for (const name of Object.keys(ownSets)) controller.enqueue(name)
}
