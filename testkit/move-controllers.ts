import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { AWSCluster, Cluster } from '../src/api/index.ts'
import {
  isAlreadyExists,
  isConflict,
  isInvalid,
  isNotFound,
  type Client,
  type KubeObject,
  type Resource,
} from '../src/kube/index.ts'
import { capi, ownedBy } from './cluster-api.ts'
import { eventually } from './eventually.ts'

/** Somebody who writes to what is paused. */
export interface Restless {
  /** What it has seen being deleted. */
  sawLeaving: () => ReadonlySet<string>
  stop: () => Promise<void>
}

/**
 * In place of the controllers of Cluster API in a namespace, as far as they write to what is paused. Those from v1.9 on put their
 * finalizer on whatever they see without it before they ask about a pause, and leave alone what is being deleted. Those before keep
 * a record for each ClusterResourceSet and Cluster that they see, and drop it with the Cluster. Nobody does so to an AWSCluster,
 * unless a test wants it.
 */
export const runRestless = async (
  t: TestContext,
  client: Client,
  space: string,
  { finalizer, holdsAwsClusters = false }: { finalizer: string; holdsAwsClusters?: boolean },
): Promise<Restless> => {
  const end = new AbortController()
  const known = new Map<string, KubeObject>()
  const leaving = new Set<string>()
  const bindings = client.of(capi.bindings, space)

  const hold = async (kind: Resource<KubeObject>, { metadata }: KubeObject): Promise<void> => {
    const finalizers = metadata.finalizers ?? []
    if (finalizers.includes(finalizer) || (kind.kind === 'AWSCluster' && !holdsAwsClusters)) return
    const merge = { metadata: { uid: metadata.uid, finalizers: [...finalizers, finalizer] } }
    await client.of(kind, space).patch(metadata.name!, { merge }).catch(unlessLate)
  }
  const record = async (): Promise<void> => {
    const of = (kind: string) => [...known].filter(([key]) => key.startsWith(`${kind}/`)).map(([, object]) => object)
    for (const { metadata } of of('Cluster'))
      for (const set of of('ClusterResourceSet')) {
        const ownerReferences = [ownedBy(capi.resourceSets, set)]
        const spec = { bindings: [{ clusterResourceSetName: set.metadata.name }] }
        await bindings
          .create({ metadata: { namespace: space, name: metadata.name!, ownerReferences }, spec })
          .catch(unlessLate)
      }
  }
  const see = async (kind: Resource<KubeObject>, type: string, object: KubeObject): Promise<void> => {
    const key = `${kind.kind}/${object.metadata.name}`
    if (type === 'DELETED') {
      known.delete(key)
      if (kind.kind === 'Cluster') await bindings.delete(object.metadata.name!)
      return
    }
    known.set(key, object)
    if (object.metadata.deletionTimestamp) leaving.add(key)
    else await hold(kind, object)
    await record()
  }

  const faults: unknown[] = []
  const note = (error: unknown): void => {
    if (!end.signal.aborted) faults.push(error)
  }
  // One thing after the other: a record that is made is not made later than its Cluster is gone.
  let working = Promise.resolve()
  const follow = async (kind: Resource<KubeObject>): Promise<void> => {
    const events = await eventually(() =>
      client.of(kind, space).watch({ sendInitialEvents: true, timeoutSeconds: 3600, signal: end.signal }),
    )
    const reading = async (): Promise<void> => {
      for await (const batch of events)
        for (const { type, object } of batch)
          if (type !== 'BOOKMARK') working = working.then(() => see(kind, type, object)).catch(note)
    }
    void reading().catch(note)
  }
  for (const kind of [Cluster, AWSCluster, capi.machines, capi.resourceSets] as Resource<KubeObject>[])
    await follow(kind)
  const stop = async (): Promise<void> => {
    end.abort()
    await working
    assert.deepEqual(faults, [])
  }
  t.after(stop)
  return { sawLeaving: () => leaving, stop }
}

/** Others are faster, which is the point; and what is being deleted gets no finalizer. */
const unlessLate = (error: unknown): void => {
  if (![isNotFound, isAlreadyExists, isConflict, isInvalid].some((is) => is(error))) throw error
}
