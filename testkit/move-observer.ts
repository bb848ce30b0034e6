import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { annotation, AWSCluster, Cluster } from '../src/api/index.ts'
import type { Client, KubeObject, Resource } from '../src/kube/index.ts'
import type { AwsFront } from './aws-front.ts'
import { eventually } from './eventually.ts'
import { changesIn } from './move-scene.ts'

/** A management cluster, as far as somebody looks on. */
export interface Observed {
  name: string
  client: Client
  front: AwsFront
}

/** Somebody who looks at both sides all the time. */
export interface Observer {
  /** The sides that were awake for a cluster, one after the other, without the times when nobody was. */
  turns: (cluster: string) => readonly string[]
  /** Waits until it has seen that this side is the one that acts for a cluster. */
  sawAwake: (cluster: string, side: string) => Promise<unknown>
  /** Neither did both sides ever act for one cluster, nor did anybody change anything in AWS since it began to look. */
  assertQuiet: () => void
}

type Paused = KubeObject & { spec?: { paused?: boolean } }

/**
 * Watches the Clusters and AWSClusters of a namespace on both sides, until the test ends, and counts what both controllers change in AWS.
 * Two API servers have no common order of events; but all writes of a move lie between the last one that sends one side to sleep and
 * the first one that wakes the other, so that what is seen in the wrong order would have been late by a whole move.
 */
export const observeMove = async (
  t: TestContext,
  namespace: string,
  sides: readonly [Observed, Observed],
): Promise<Observer> => {
  const end = new AbortController()
  t.after(() => end.abort())
  const views = sides.map(() => ({ own: new Map<string, Paused>(), clusters: new Map<string, Paused>() }))
  const turns = new Map<string, string[]>()
  const overlaps: string[] = []
  const began = sides.map(({ front }) => changesIn(front).length)

  const isAwake = ({ own, clusters }: (typeof views)[number], name: string): boolean => {
    const annotations = own.get(name)?.metadata.annotations ?? {}
    if (!own.has(name) || annotation.paused in annotations || annotation.managedBy in annotations) return false
    return clusters.get(name)?.spec?.paused !== true
  }
  const look = (name: string, why: string): void => {
    const awake = sides.filter((_, at) => isAwake(views[at]!, name))
    if (awake.length > 1) overlaps.push(`${name} after ${why}`)
    const said = turns.get(name) ?? []
    turns.set(name, said)
    for (const side of awake) if (said.at(-1) !== side.name) said.push(side.name)
  }
  const follow = async (kind: Resource<Paused>, client: Client, view: Map<string, Paused>, side: string) => {
    // An API server that was just given a kind answers 429 until it has read all of them.
    const events = await eventually(() =>
      client.of(kind, namespace).watch({ sendInitialEvents: true, timeoutSeconds: 3600, signal: end.signal }),
    )
    const reading = async (): Promise<void> => {
      for await (const batch of events)
        for (const { type, object } of batch) {
          const name = object.metadata.name!
          if (type === 'DELETED') view.delete(name)
          else if (type !== 'BOOKMARK') view.set(name, object)
          if (type !== 'BOOKMARK') look(name, `${type} of ${kind.kind} on ${side}`)
        }
    }
    void reading().then(
      () => end.signal.aborted || overlaps.push(`nobody watched ${kind.kind} on ${side} any more`),
      (error: unknown) => end.signal.aborted || overlaps.push(`watch of ${kind.kind} on ${side}: ${String(error)}`),
    )
  }
  for (const [at, { client, name }] of sides.entries()) {
    await follow(AWSCluster as Resource<Paused>, client, views[at]!.own, name)
    await follow(Cluster as Resource<Paused>, client, views[at]!.clusters, name)
  }
  return {
    turns: (cluster) => turns.get(cluster) ?? [],
    sawAwake: (cluster, side) =>
      eventually(() => assert.equal(turns.get(cluster)?.at(-1), side), {
        timeoutMs: 60_000,
        message: `${cluster} on ${side}`,
      }),
    assertQuiet: () => {
      assert.deepEqual(overlaps, [], 'both sides might act')
      const changes = sides.map(({ front }, at) => changesIn(front).slice(began[at]))
      assert.deepEqual(changes, [[], []], 'AWS saw a change')
    },
  }
}
