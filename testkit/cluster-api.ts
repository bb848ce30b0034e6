import { foreign, machines } from './move-scene.ts'
import { installCrds } from '../src/api/index.ts'
import type { Client, KubeObject, OwnerReference, Resource } from '../src/kube/index.ts'

const core = 'cluster.x-k8s.io'
const infrastructure = `infrastructure.${core}`
const addOns = `addons.${core}`
const both = ['v1beta2', 'v1beta1']

const kinds = {
  machines,
  classes: foreign(core, 'ClusterClass', 'clusterclasses', both),
  resourceSets: foreign(addOns, 'ClusterResourceSet', 'clusterresourcesets', both),
  bindings: foreign(addOns, 'ClusterResourceSetBinding', 'clusterresourcesetbindings', both),
  clusterTemplates: foreign(infrastructure, 'AWSClusterTemplate', 'awsclustertemplates', ['v1beta2']),
  /** Another provider's identity, which is in no namespace. */
  globalIdentities: foreign(infrastructure, 'VSphereClusterIdentity', 'vsphereclusteridentities', ['v1beta1'], {
    namespaced: false,
  }),
  /** A kind of which everything goes along, and one that is only looked at. */
  carried: foreign('example.com', 'Carried', 'carrieds', ['v1'], {
    labels: { 'clusterctl.cluster.x-k8s.io/move': '' },
  }),
  looked: foreign('example.com', 'Looked', 'lookeds', ['v1'], { labels: { 'clusterctl.cluster.x-k8s.io': '' } }),
}

type Name = keyof typeof kinds

/** Kinds of Cluster API by name, as `client.of` takes them. */
export const capi = Object.fromEntries(Object.entries(kinds).map(([name, { kind }]) => [name, kind])) as Record<
  Name,
  Resource
>

/** Cluster API and a few of its providers on a management cluster: their kinds, and nobody who acts. */
export const installClusterApi = (client: Client): Promise<void> =>
  installCrds(
    client,
    Object.values(kinds).map(({ crd }) => crd),
  )

/** How something names its owner. */
export const ownedBy = (
  { group, version, kind }: Pick<Resource, 'group' | 'version' | 'kind'>,
  { metadata }: KubeObject,
): OwnerReference => ({
  apiVersion: `${group}/${version}`,
  kind,
  name: metadata.name!,
  uid: metadata.uid!,
})

/** How a spec names another object, as far as this can be read from its kind. */
export const referenceTo = ({ group, kind }: Resource, name: string) => ({ apiGroup: group, kind, name })
