import { conversions, group, label, ManagedCluster, ManagedClusterAddOn, ManifestWork } from '../../../../api/index.ts'
import { dataType, type DataType, type EventParts } from '../../../../events/index.ts'
import { apiVersionOf, CertificateSigningRequest, Lease, type KubeObject } from '../../../../kube/index.ts'
import { equal, type Informer } from '../../../../runtime/index.ts'
import type { Hub } from '../../../hub/hub.ts'
import { clusterLeases } from '../../../hub/leases.ts'

/** What an event says of an object, besides what all events say. */
export type Said = Pick<EventParts, 'resourceId' | 'resourceVersion' | 'metadata' | 'data'>

/** A data type that agents can subscribe to: where its objects come from, and how they look on the wire. */
export interface Served<T extends KubeObject = KubeObject> {
  dataType: DataType
  /** Shared by all subscribers: how many there are makes no difference to the API server. */
  informer: Informer<T>
  clusterOf(object: T): string
  /** All objects of one cluster. */
  of(cluster: string): T[]
  /** What it is called in events and resyncs. */
  idOf(object: T): string
  /** Whether agents have to hear of a change. */
  differs(object: T, old: T): boolean
  say(object: T): Said
  /** By generation a resync sends only what is newer; otherwise everything. */
  versioned: boolean
}

const always = (): boolean => true
const byCluster = 'cluster'
const clusterLabel = ({ metadata }: KubeObject): string => metadata.labels?.[label.clusterName] ?? ''
const namespaceOf = ({ metadata }: KubeObject): string => metadata.namespace!

/** The caches that the endpoint serves from. */
export interface Caches {
  clusters: Informer<ManagedCluster>
  csrs: Informer<CertificateSigningRequest>
  addOns: Informer<ManagedClusterAddOn>
  leases: Informer<Lease>
  works: Informer<ManifestWork>
}

export const cachesFor = (manager: Hub['manager']): Caches => ({
  clusters: manager.informer(ManagedCluster),
  csrs: manager.informer(CertificateSigningRequest, {
    labelSelector: label.clusterName,
    indexes: { [byCluster]: (csr) => [clusterLabel(csr)] },
  }),
  addOns: manager.informer(ManagedClusterAddOn),
  leases: clusterLeases({ manager }),
  works: manager.informer(ManifestWork),
})

/** The certificate requests that carry the name of a cluster. */
export const csrsOf = ({ csrs }: Caches, cluster: string): CertificateSigningRequest[] => csrs.by(byCluster, cluster)

/** Everything that can be subscribed to and listed. */
export const servedFrom = (caches: Caches): Served[] => {
  const { clusters, addOns, leases, works } = caches
  const inNamespace = <T extends KubeObject>(informer: Informer<T>) => ({
    informer,
    clusterOf: namespaceOf,
    of: (cluster: string) => informer.list(cluster),
  })
  const plain = { idOf: nameOf, differs: always, versioned: false }
  const all: [
    Served<ManagedCluster>,
    Served<CertificateSigningRequest>,
    Served<ManagedClusterAddOn>,
    Served<ManagedClusterAddOn>,
    Served<Lease>,
    Served<ManifestWork>,
  ] = [
    {
      ...plain,
      dataType: dataType.managedClusters,
      informer: clusters,
      clusterOf: nameOf,
      of: (cluster) => [clusters.get(cluster)].filter((one) => one !== undefined),
      say: whole(ManagedCluster),
    },
    {
      ...plain,
      dataType: dataType.certificateSigningRequests,
      informer: caches.csrs,
      clusterOf: clusterLabel,
      of: (cluster) => csrsOf(caches, cluster),
      say: whole(CertificateSigningRequest),
    },
    { ...plain, ...inNamespace(addOns), dataType: dataType.addOns, say: whole(ManagedClusterAddOn) },
    {
      ...plain,
      ...inNamespace(addOns),
      dataType: dataType.addOnsAlpha,
      say: (addOn) => whole(ManagedClusterAddOn.versions.v1alpha1)(asAlpha(addOn)),
    },
    // Its agent renews it, and need not hear of that.
    {
      ...plain,
      ...inNamespace(leases),
      dataType: dataType.leases,
      differs: (lease, old) => lease.metadata.uid !== old.metadata.uid,
      say: whole(Lease),
    },
    {
      ...inNamespace(works),
      dataType: dataType.manifestBundles,
      idOf: ({ metadata }) => metadata.uid!,
      // What agents report comes back as a change of status: that is no news for them.
      differs: ({ metadata: now }, { metadata: old }) =>
        now.generation !== old.generation ||
        now.deletionTimestamp !== old.deletionTimestamp ||
        !equal(now.labels, old.labels) ||
        !equal(now.annotations, old.annotations),
      say: bundle,
      versioned: true,
    },
  ]
  return all as unknown as Served[]
}

const nameOf = ({ metadata }: KubeObject): string => metadata.name!

const whole =
  (kind: { group: string; version: string; kind: string }) =>
  (object: KubeObject): Said => ({
    resourceId: object.metadata.name,
    resourceVersion: object.metadata.resourceVersion,
    data: { ...object, apiVersion: apiVersionOf(kind), kind: kind.kind },
  })

const addOnKind = `${group.addon}/ManagedClusterAddOn`

const converted = (addOn: KubeObject, from: string, to: string): KubeObject =>
  conversions[addOnKind]!(
    { ...addOn, apiVersion: `${group.addon}/${from}`, kind: 'ManagedClusterAddOn' },
    `${group.addon}/${to}`,
  )

/** An add-on as agents of the earlier version know it. */
const asAlpha = (addOn: ManagedClusterAddOn): KubeObject => converted(addOn, 'v1beta1', 'v1alpha1')
/** And what they say of it, as it is stored. */
export const fromAlpha = (addOn: KubeObject): ManagedClusterAddOn => converted(addOn, 'v1alpha1', 'v1beta1')

const bundle = ({ metadata, spec }: ManifestWork): Said => ({
  resourceId: metadata.uid,
  resourceVersion: metadata.generation ?? 0,
  metadata,
  ...(metadata.deletionTimestamp
    ? {}
    : {
        data: {
          manifests: spec.workload?.manifests ?? [],
          deleteOption: spec.deleteOption,
          manifestConfigs: spec.manifestConfigs,
          // As the field writes it.
          executer: spec.executor,
        },
      }),
})
