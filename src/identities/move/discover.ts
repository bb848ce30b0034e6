import { annotation, label } from '../../api/index.ts'
import {
  ConfigMap,
  CustomResourceDefinition,
  isForbidden,
  Namespace,
  Secret,
  servedResources,
  type Client,
  type Resource,
  type Unstructured,
} from '../../kube/index.ts'
import { inParallel } from '../../runtime/index.ts'
import type { Bundle, Found, Obstacle } from './bundle.ts'
import { followIdentities } from './credentials.ts'
import { chooseNeeded, moveLabel } from './graph.ts'
import { askedByMove, nameOf } from './marks.ts'

/** One side of a move. */
export interface Hub {
  readonly client: Client
  /** The uid of its namespace kube-system: the same cluster under another name is still the same. */
  readonly uid: string
  /** Where the controller of AWS identities lives. */
  readonly controllerNamespace: string
}

export const hubAt = async (client: Client, controllerNamespace: string, signal: AbortSignal): Promise<Hub> => {
  const { metadata } = await client.of(Namespace).get('kube-system', { signal })
  return { client, controllerNamespace, uid: metadata.uid! }
}

/** CRDs that providers want to be moved carry this; ours and Cluster API's are known by their group. */
const crdLabel = 'clusterctl.cluster.x-k8s.io'
export const isClusterApi = (group: string): boolean => /(^|\.)cluster\.x-k8s\.io$/.test(group) && group !== crdLabel

/** Many kinds, each one request. */
const width = 16

/** Reads a namespace and follows it to everything that its clusters stand on. */
export const discover = async (
  hub: Hub,
  namespace: string,
  signal: AbortSignal,
): Promise<{ bundle: Bundle; obstacles: Obstacle[] }> => {
  const { client } = hub
  const space = await client.of(Namespace).find(namespace, { signal })
  const empty = { origin: hub.uid, namespace, labels: {}, controllerNamespace: hub.controllerNamespace }
  if (!space) return { bundle: { ...empty, items: [], left: [] }, obstacles: [] }
  const { all, chosen, obstacles } = await everythingIn(client, namespace, signal)
  const { items, left } = chooseNeeded(all, (kind) => chosen.has(crdOf(kind)))
  const credentials = await followIdentities(hub, items, signal)
  const bundle = {
    ...empty,
    labels: space.metadata.labels ?? {},
    items: [...credentials.items, ...items.map((item) => ({ ...item, wave: item.wave + credentials.waves }))],
    left: left.map(({ resource, object }) => nameOf(resource, object)),
  }
  return { bundle, obstacles: [...obstacles, ...credentials.obstacles] }
}

/** All that a namespace has of the kinds that could belong to a cluster. */
export const everythingIn = async (
  client: Client,
  namespace: string,
  signal: AbortSignal,
): Promise<{ all: Found[]; chosen: ReadonlySet<string>; obstacles: Obstacle[] }> => {
  const lists = new Map<Resource, Unstructured[]>()
  const obstacles: Obstacle[] = []
  const { kinds, chosen } = await movableKinds(client, signal)
  await inParallel(
    width,
    kinds.map((kind) => async () => {
      try {
        lists.set(kind, (await client.of(kind, namespace).list({ signal })).items)
      } catch (error) {
        if (!isForbidden(error)) throw error
        obstacles.push({
          what: `you may not list ${kind.plural}${kind.group && `.${kind.group}`} in namespace ${namespace} of ${client.connection.server}`,
          next: 'let somebody bind you to a role that may get, list, patch and delete there, or use another --context',
        })
      }
    }),
  )
  const all = kinds.flatMap((resource) =>
    (lists.get(resource) ?? [])
      .filter(({ metadata }) => metadata.annotations?.[annotation.managedBy] !== askedByMove)
      .map((object) => ({ resource, object })),
  )
  return { all, chosen, obstacles }
}

const crdOf = ({ plural, group }: Pick<Resource, 'plural' | 'group'>): string => `${plural}.${group}`

/** Kinds whose objects could belong to a cluster, and the CRDs of those of which every object goes along. */
const movableKinds = async (
  client: Client,
  signal: AbortSignal,
): Promise<{ kinds: Resource[]; chosen: ReadonlySet<string> }> => {
  const labelled = async (labelSelector: string): Promise<string[]> => {
    const { items } = await client.of(CustomResourceDefinition).list({ labelSelector, metadataOnly: true, signal })
    return items.map(({ metadata }) => metadata.name!)
  }
  const [{ resources }, known, ...forced] = await Promise.all([
    servedResources(client, { signal }),
    ...[crdLabel, moveLabel, label.moveHierarchy].map(labelled),
  ])
  const chosen = new Set(forced.flat())
  const wanted = new Set([...known!, ...chosen])
  const custom = resources.filter(
    ({ group, plural, namespaced, verbs }) =>
      namespaced &&
      ['list', 'create', 'delete'].every((verb) => verbs.includes(verb)) &&
      (isClusterApi(group) || wanted.has(crdOf({ plural, group }))),
  )
  const core: Resource[] = [Secret as unknown as Resource, ConfigMap as unknown as Resource]
  return { kinds: [...custom.map(({ verbs: _verbs, ...kind }) => kind), ...core], chosen }
}
