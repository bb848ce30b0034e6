import type { TestContext } from 'node:test'
import { startFaultProxy, type FaultProxy } from './faults.ts'
import { foreign, machines } from './move-scene.ts'
import { startTwoHubs, type TwoHubs } from './two-hubs.ts'
import { AWSCluster, AWSClusterControllerIdentity, Cluster, installCrds } from '../src/api/index.ts'
import {
  ConfigMap,
  Secret,
  type Client,
  type KubeObject,
  type OwnerReference,
  type Resource,
} from '../src/kube/index.ts'

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

/** Two management clusters with these kinds. Whom clusters act as is not the point there. */
export const startClusterApiHubs = async (): Promise<TwoHubs> => {
  const hubs = await startTwoHubs()
  for (const client of [hubs.here, hubs.there]) {
    await installClusterApi(client)
    const spec = { allowedNamespaces: {} }
    await client.of(AWSClusterControllerIdentity).create({ metadata: { name: 'default' }, spec })
  }
  return hubs
}

/** What is never let go of is given up before anybody loses patience. */
export const moving = (space: string): string[] => ['-n', space, '--no-account-check', '--timeout', '60']
export const pausedBy = 'cluster.x-k8s.io/paused'
export const blockMove = 'clusterctl.cluster.x-k8s.io/block-move'

/** What is in a namespace, by kind. */
export const contents = async (client: Client, space: string): Promise<string[]> => {
  const all: Record<string, Resource<KubeObject>> = { ...capi, Cluster, AWSCluster, Secret, ConfigMap }
  const namespaced = Object.values(all).filter((kind) => kind.namespaced)
  const lists = await Promise.all(namespaced.map(async (kind) => (await client.of(kind, space).list()).items))
  return lists
    .flatMap((items, at) => items.map(({ metadata }) => `${namespaced[at]!.kind}/${metadata.name}`))
    .toSorted()
}

/** The target, or the source, with a server in front that can be told to fail. */
export const proxied = async (t: TestContext, hubs: TwoHubs, side: 'one' | 'two' = 'two'): Promise<FaultProxy> => {
  const proxy = await startFaultProxy(hubs[side], { user: 'mover', groups: ['system:masters'] })
  t.after(() => proxy.stop())
  return proxy
}
