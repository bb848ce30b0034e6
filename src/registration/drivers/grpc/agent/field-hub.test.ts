import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { eventually } from '../../../../../testkit/index.ts'
import { grpcAuthority } from '../../../../../testkit/grpc-authority.ts'
import { finalizer, ManagedCluster, ManagedClusterAddOn, ManifestWork } from '../../../../api/index.ts'
import {
  code,
  dataType,
  encodeEvent,
  EventServer,
  framed,
  GrpcError,
  makeEvent,
  prefixLength,
  readEvent,
  type Action,
  type EventParts,
  type Outbox,
} from '../../../../events/index.ts'
import { isNotFound, type KubeObject } from '../../../../kube/index.ts'
import { silentLogger, systemClock, type Clock } from '../../../../runtime/index.ts'
import { grpcApi } from './api.ts'

const authority = grpcAuthority()
const begun = Date.now()
/** What a hub that never says when a resync is complete makes us wait for passes twenty times as fast. */
const fastClock: Clock = {
  now: () => begun + (Date.now() - begun) * 20,
  after: (ms, run) => systemClock.after(ms / 20, run),
}

/** Answers resyncs as the gRPC server of Open Cluster Management 1.2 does. */
const fieldHub = async (t: TestContext) => {
  const stored = new Map<string, KubeObject>()
  const outboxes = new Map<string, Outbox[]>()
  const say = (type: string, action: Action, parts: Partial<EventParts>): void => {
    const event = makeEvent({ dataType: type, side: 'spec', action, source: 'kube', cluster: 'c1', now: 0, ...parts })
    const frame = framed(encodeEvent(event, { reserve: prefixLength }))
    for (const outbox of outboxes.get(type) ?? []) outbox.put(event.id, () => frame)
  }
  const tell = (action: Action, object: KubeObject): void => {
    const { name, uid, resourceVersion, generation, deletionTimestamp } = object.metadata
    const deletedAt = deletionTimestamp ? Date.parse(deletionTimestamp) : undefined
    if (object.kind !== 'ManifestWork')
      return say(dataType.managedClusters, action, { resourceId: name, resourceVersion, data: object })
    const data = deletionTimestamp ? undefined : { manifests: [] }
    const parts = { resourceId: uid, resourceVersion: generation, metadata: object.metadata, deletedAt, data }
    say(dataType.manifestBundles, action, parts)
  }
  /** Of works, the generation stands where the version is. */
  const listed = (object: KubeObject): KubeObject => {
    const { metadata } = object
    const resourceVersion = String(metadata.generation)
    return object.kind === 'ManifestWork' ? { ...object, metadata: { ...metadata, resourceVersion } } : object
  }
  const resync = (type: string, held: { resourceID: string; resourceVersion: number }[]): void => {
    const kind = type === dataType.manifestBundles ? 'ManifestWork' : 'ManagedCluster'
    const present = [...stored.values()].filter((one) => one.kind === kind)
    // Where there is nothing, it does not look at what the other side has.
    if (present.length === 0) return
    for (const one of present)
      tell(kind === 'ManifestWork' && one.metadata.deletionTimestamp ? 'delete_request' : 'update_request', listed(one))
    const ids = new Set(present.map(({ metadata }) => (kind === 'ManifestWork' ? metadata.uid : metadata.name)))
    for (const { resourceID, resourceVersion } of held)
      if (!ids.has(resourceID))
        say(type, 'delete_request', { resourceId: resourceID, resourceVersion, deletedAt: Date.now() })
  }
  const server = new EventServer<string>({
    host: '127.0.0.1',
    port: 0,
    tls: () => ({ ...authority.serving(), ca: authority.ca }),
    service: {
      admit: async () => ({ who: 'c1' }),
      publish: async (event) => {
        const read = readEvent(event)!
        const data = read.data() as { resourceVersions: { resourceID: string; resourceVersion: number }[] }
        if (read.action === 'resync_request') resync(read.dataType, data.resourceVersions)
      },
      subscribe: async ({ dataType: type }) => {
        if (type === dataType.addOns)
          throw new GrpcError(code.permissionDenied, `access denied: unsupported event type ${type}`)
        return (outbox) => void outboxes.set(type, [...(outboxes.get(type) ?? []), outbox])
      },
    },
  })
  await server.start()
  t.after(() => server.stop())
  const credential = { ca: authority.ca, ...authority.client({ user: 'c1' }) }
  const api = grpcApi({
    connection: { source: 'test', server: `https://127.0.0.1:${server.port}`, credentials: async () => credential },
    cluster: 'c1',
    timeoutMs: 600_000,
    silenceMs: 0,
    clock: fastClock,
    random: () => 0,
    log: silentLogger,
  })
  t.after(() => api.close())
  return {
    api,
    store: (object: KubeObject): void => void stored.set(object.metadata.uid!, object),
    forget: (object: KubeObject): void => void stored.delete(object.metadata.uid!),
    tell,
  }
}

const cluster = (resourceVersion: string): KubeObject => ({
  apiVersion: 'cluster.open-cluster-management.io/v1',
  kind: 'ManagedCluster',
  metadata: { name: 'c1', uid: 'uid-of-c1', resourceVersion },
})
const work = (metadata: Partial<KubeObject['metadata']>): KubeObject => ({
  kind: 'ManifestWork',
  metadata: { name: 'w', namespace: 'c1', uid: 'uid-of-w', generation: 1, resourceVersion: '500', ...metadata },
})
const held = { finalizers: [finalizer.manifestWork] }

test('R6.1 an object that was read before is there when a hub of the field is asked again', async (t) => {
  const { api, store } = await fieldHub(t)
  store(cluster('7'))
  const clusters = api.of(ManagedCluster)
  for (let time = 1; time <= 3; time++)
    assert.equal((await clusters.find('c1'))?.metadata.uid, 'uid-of-c1', `read ${time}`)
})

test('R6.1 a work that was changed while a hub of the field was away is news, though its list has no versions', async (t) => {
  const { api, store, tell } = await fieldHub(t)
  const works = api.of(ManifestWork, 'c1')
  const generation = async () => (await works.find('w'))?.metadata.generation
  assert.equal(await generation(), undefined)
  store(work({}))
  tell('create_request', work({}))
  await eventually(async () => assert.equal(await generation(), 1))
  store(work({ generation: 2, resourceVersion: '520' }))
  assert.equal(await generation(), 2)
  tell('update_request', work({ generation: 3, resourceVersion: '530' }))
  store(work({ generation: 3, resourceVersion: '530' }))
  assert.equal(await generation(), 3)
})

test('R6.1 a work that a hub of the field lists as being deleted is still there, and gone when it is', async (t) => {
  const { api, store, forget, tell } = await fieldHub(t)
  const works = api.of(ManifestWork, 'c1')
  const deletionTimestamp = '2026-01-01T00:00:00Z'
  const doomed = work({ ...held, deletionTimestamp, generation: 2, resourceVersion: '520' })
  store(doomed)
  const { metadata } = await works.get('w')
  assert.deepEqual([metadata.deletionTimestamp, metadata.finalizers], [deletionTimestamp, held.finalizers])
  store(work({ name: 'other', uid: 'uid-of-other' }))
  forget(doomed)
  tell('delete_request', doomed)
  assert.deepEqual(
    (await works.list()).items.map((one) => one.metadata.name),
    ['other'],
  )
})

test('R6.1 a kind that a hub of the field does not speak of is not found, and not forbidden', async (t) => {
  const { api } = await fieldHub(t)
  const addOns = api.of(ManagedClusterAddOn, 'c1')
  await assert.rejects(addOns.list(), isNotFound)
  assert.equal(await addOns.find('a'), undefined)
  assert.deepEqual((await api.of(ManagedClusterAddOn.versions.v1alpha1, 'c1').list()).items, [])
})
