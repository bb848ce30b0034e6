import { group, ManagedCluster, ManagedClusterAddOn } from '../../../../api/index.ts'
import { dataType, type EventType } from '../../../../events/index.ts'
import { Event, isNotFound, Lease, type KubeObject, type ObjectMeta } from '../../../../kube/index.ts'
import { leaseName } from '../../../contract.ts'
import { validateCluster } from '../../../hub/cluster-admission.ts'
import { refusal } from './authorization.ts'
import { createCsr } from './csr-request.ts'
import { fromAlpha } from './served.ts'
import {
  isRecord,
  invalid,
  mustBe,
  nameIn,
  objectIn,
  versionIn,
  type Desk,
  type Publication,
  type Write,
} from './publication.ts'
import { requestToken } from './token-request.ts'
import { reportWork } from './work-status.ts'

const clustersWish = (cluster: string, verb: string, subresource?: string) => ({
  cluster,
  verb,
  group: group.cluster,
  resource: 'managedclusters',
  name: cluster,
  ...(subresource ? { subresource } : {}),
})

/** What an agent may say of an object's metadata when it makes one. */
const saidMetadata = ({ name, namespace, labels, annotations }: ObjectMeta): ObjectMeta => ({
  name,
  ...(namespace ? { namespace } : {}),
  ...(labels ? { labels } : {}),
  ...(annotations ? { annotations } : {}),
})

const createCluster: Write = async (desk, publication) => {
  const { who, cluster, signal } = publication
  const said = objectIn(ManagedCluster, publication)
  mustBe('metadata.name', nameIn(said, publication), cluster)
  await desk.access.demand(who, clustersWish(cluster, 'create'))
  const object: ManagedCluster = { metadata: saidMetadata(said.metadata), spec: isRecord(said.spec) ? said.spec : {} }
  await admit(desk, publication, object, undefined)
  await desk.client.of(ManagedCluster).create(object, { fieldManager, signal })
}

const updateCluster: Write = async (desk, publication) => {
  const { who, cluster, signal } = publication
  const said = objectIn(ManagedCluster, publication)
  mustBe('metadata.name', nameIn(said, publication), cluster)
  const resourceVersion = versionIn(said)
  await desk.access.demand(who, clustersWish(cluster, 'update'))
  const clusters = desk.client.of(ManagedCluster)
  const cached = desk.caches.clusters.get(cluster)
  const old = cached?.metadata.resourceVersion === resourceVersion ? cached : await clusters.get(cluster, { signal })
  // The API server stores it only over this version, so that what is judged is what is changed.
  if (old.metadata.resourceVersion !== resourceVersion)
    throw refusal('Conflict', 409, `ManagedCluster ${cluster} has changed since it was read`)
  const { labels, annotations, finalizers, ownerReferences } = said.metadata
  const metadata = { ...old.metadata, labels, annotations, finalizers, ownerReferences }
  const object: ManagedCluster = { ...old, metadata, spec: isRecord(said.spec) ? said.spec : {} }
  await admit(desk, publication, object, old)
  await clusters.update(object, { fieldManager, signal })
}

/** The hub's admission, judged as the caller: the webhook sees only that the hub itself writes. */
const admit = async (
  { client, gates }: Desk,
  { who, cluster, signal }: Publication,
  object: ManagedCluster,
  oldObject: ManagedCluster | undefined,
): Promise<void> => {
  const kind = { group: group.cluster, version: 'v1' }
  const verdict = await validateCluster({ client, gates })(
    {
      uid: '',
      kind: { ...kind, kind: 'ManagedCluster' },
      resource: { ...kind, resource: 'managedclusters' },
      name: cluster,
      operation: oldObject ? 'UPDATE' : 'CREATE',
      userInfo: who,
      object,
      ...(oldObject ? { oldObject } : {}),
      dryRun: false,
    },
    { signal } as Parameters<ReturnType<typeof validateCluster>>[1],
  )
  if (verdict && 'reason' in verdict)
    throw refusal(verdict.reason, verdict.reason === 'Forbidden' ? 403 : 422, verdict.message)
}

const reportCluster: Write = async (desk, publication) => {
  const { who, cluster, signal } = publication
  const said = objectIn(ManagedCluster, publication)
  mustBe('metadata.name', nameIn(said, publication), cluster)
  const resourceVersion = versionIn(said)
  await desk.access.demand(who, clustersWish(cluster, 'update', 'status'))
  const known = desk.caches.clusters.get(cluster)
  const metadata = { ...(known?.metadata ?? { name: cluster }), resourceVersion }
  const object = { metadata, spec: known?.spec ?? {}, status: isRecord(said.status) ? said.status : {} }
  await desk.client.of(ManagedCluster).updateStatus(object, { fieldManager, signal })
}

const reportAddOn =
  (read: (said: KubeObject) => ManagedClusterAddOn): Write =>
  async (desk, publication) => {
    const { who, cluster, signal } = publication
    const raw = objectIn(ManagedClusterAddOn, publication)
    const name = nameIn(raw, publication)
    mustBe('metadata.namespace', raw.metadata.namespace, cluster)
    const resourceVersion = versionIn(raw)
    const wish = {
      cluster,
      verb: 'update',
      group: group.addon,
      resource: 'managedclusteraddons',
      subresource: 'status',
    }
    await desk.access.demand(who, { ...wish, namespace: cluster, name })
    const known = desk.caches.addOns.get(`${cluster}/${name}`)
    const metadata = { ...(known?.metadata ?? { name, namespace: cluster }), resourceVersion }
    const status = read(raw).status ?? {}
    const object = { metadata, spec: known?.spec ?? {}, status }
    await desk.client.of(ManagedClusterAddOn, cluster).updateStatus(object, { fieldManager, signal })
  }

const renewLease: Write = async (desk, publication) => {
  const { who, cluster, signal } = publication
  const said = objectIn(Lease, publication)
  const name = nameIn(said, publication)
  mustBe('metadata.namespace', said.metadata.namespace, cluster)
  mustBe('metadata.name', name, leaseName)
  if (!isRecord(said.spec)) throw invalid('spec is missing')
  const wish = { cluster, verb: 'update', group: 'coordination.k8s.io', resource: 'leases', namespace: cluster, name }
  await desk.access.demand(who, wish)
  // Only what a renewal is about: the rest, and the labels that the hub has put there, stay.
  const { renewTime, acquireTime, holderIdentity, leaseDurationSeconds, leaseTransitions } = said.spec
  const spec = { renewTime, acquireTime, holderIdentity, leaseDurationSeconds, leaseTransitions }
  await desk.client.of(Lease, cluster).patch(name, { merge: { spec } }, { fieldManager, signal })
}

const eventWish = (cluster: string, verb: string) => ({
  cluster,
  verb,
  group: 'events.k8s.io',
  resource: 'events',
  namespace: cluster,
})

const createEvent: Write = async (desk, publication) => {
  const { who, cluster, signal } = publication
  const said = objectIn(Event, publication)
  mustBe('metadata.namespace', said.metadata.namespace, cluster)
  nameIn(said, publication)
  await desk.access.demand(who, eventWish(cluster, 'create'))
  await desk.client
    .of(Event, cluster)
    .create({ ...said, metadata: saidMetadata(said.metadata) }, { fieldManager, signal })
}

/** An event only goes on: how often, and since when. One that has gone is not missed. */
const continueEvent: Write = async (desk, publication) => {
  const { who, cluster, signal } = publication
  const said = objectIn(Event, publication)
  mustBe('metadata.namespace', said.metadata.namespace, cluster)
  const name = nameIn(said, publication)
  await desk.access.demand(who, { ...eventWish(cluster, 'update'), name })
  const change = { merge: { series: said.series ?? null } }
  await desk.client
    .of(Event, cluster)
    .patch(name, change, { fieldManager, signal })
    .catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
}

/** Who writes, in managedFields: what agents write over the Kubernetes API has their own names. */
const fieldManager = 'lanyard-grpc'

const key = ({ dataType, side, action }: EventType): string => `${dataType} ${side} ${action}`

const writes = new Map<string, Write>([
  [key({ dataType: dataType.managedClusters, side: 'spec', action: 'create_request' }), createCluster],
  [key({ dataType: dataType.managedClusters, side: 'spec', action: 'update_request' }), updateCluster],
  [key({ dataType: dataType.managedClusters, side: 'status', action: 'update_request' }), reportCluster],
  [key({ dataType: dataType.certificateSigningRequests, side: 'spec', action: 'create_request' }), createCsr],
  [key({ dataType: dataType.addOns, side: 'status', action: 'update_request' }), reportAddOn((one) => one)],
  [key({ dataType: dataType.addOnsAlpha, side: 'status', action: 'update_request' }), reportAddOn(fromAlpha)],
  [key({ dataType: dataType.leases, side: 'spec', action: 'update_request' }), renewLease],
  [key({ dataType: dataType.leases, side: 'status', action: 'update_request' }), renewLease],
  [key({ dataType: dataType.events, side: 'spec', action: 'create_request' }), createEvent],
  [key({ dataType: dataType.events, side: 'spec', action: 'update_request' }), continueEvent],
  [key({ dataType: dataType.manifestBundles, side: 'status', action: 'update_request' }), reportWork],
  [key({ dataType: dataType.tokenRequests, side: 'spec', action: 'create_request' }), requestToken],
])

/** Who acts on an event of this type; undefined when nobody does. */
export const writeFor = (type: EventType): Write | undefined => writes.get(key(type))
