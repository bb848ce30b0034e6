import { isDeepStrictEqual } from 'node:util'
import {
  KindMapper,
  Namespace,
  servedResources,
  type Client,
  type KubeObject,
  type Resource,
  type Unstructured,
} from '../../kube/index.ts'
import { inParallel } from '../../runtime/index.ts'
import { idOf, idOfFound, type Bundle, type Found, type Item, type Obstacle } from './bundle.ts'
import type { Hub } from './discover.ts'
import { intoDirectory, isPausable, mark, markOf } from './marks.ts'
import { asOnTarget } from './translate.ts'

/** What is on the target already, as far as it concerns a move. */
export interface Present {
  readonly namespace: Namespace | undefined
  /** By the id that they have, or would have, on the target. */
  readonly objects: ReadonlyMap<string, Unstructured>
  /** What came from the source in an earlier run and is still paused. */
  readonly coming: readonly Found[]
  readonly obstacles: readonly Obstacle[]
}

const width = 16

/** The id of an item on the target: only Secrets beside the controller change their place. */
export const idThere = (bundle: Bundle, item: Item, hub: Pick<Hub, 'controllerNamespace'>): string => {
  const { metadata } = asOnTarget(bundle, item, {
    controllerNamespace: hub.controllerNamespace,
    uidOf: () => undefined,
  })
  return idOf(item.resource, metadata.namespace, metadata.name!)
}

export const lookAtTarget = async (hub: Hub, bundle: Bundle, signal: AbortSignal): Promise<Present> => {
  const { client } = hub
  // An earlier run may have left some of these paused, although nothing is left of them at the source.
  const pausables = (await servedResources(client, { signal })).resources.filter(isPausable)
  // What comes is read in the version that it comes in: only then can the two be compared.
  const kinds = new Map(
    [...pausables, ...bundle.items.map(({ resource }) => resource)].map((resource) => [key(resource), resource]),
  )
  const obstacles: Obstacle[] = []
  const served = new Set<string>()
  const mapper = new KindMapper(client)
  for (const [id, resource] of kinds) {
    if (await isServed(mapper, resource, signal)) served.add(id)
    else if (bundle.items.some((item) => key(item.resource) === id))
      obstacles.push(await notServed(mapper, client, resource, signal))
  }
  const namespace = await client.of(Namespace).find(bundle.namespace, { signal })
  const objects = new Map<string, Unstructured>()
  const keep = (resource: Resource, object: Unstructured | undefined): void => {
    if (object) objects.set(idOfFound({ resource, object }), object)
  }
  const moved = new Map(
    [...pausables, ...bundle.items.filter(({ fate }) => fate === 'move').map(({ resource }) => resource)].map(
      (resource) => [key(resource), resource],
    ),
  )
  const lists = namespace
    ? [...moved]
        .filter(([id]) => served.has(id))
        .map(([, resource]) => async () => {
          for (const object of (await client.of(resource, bundle.namespace).list({ signal })).items)
            keep(resource, object)
        })
    : []
  const copies = bundle.items
    .filter(({ fate, resource }) => fate === 'copy' && served.has(key(resource)))
    .map((item) => async () => {
      const { metadata } = asOnTarget(bundle, item, { ...hub, uidOf: () => undefined })
      keep(item.resource, await client.of(item.resource, metadata.namespace).find(metadata.name!, { signal }))
    })
  await inParallel(width, [...lists, ...copies])
  const all = [...moved.values()]
    .filter(isPausable)
    .flatMap((resource) =>
      [...objects.values()]
        .filter((object) => objects.get(idOfFound({ resource, object })) === object)
        .map((object) => ({ resource, object })),
    )
  return { namespace, objects, coming: all.filter(({ object }) => isFrom(object, bundle)), obstacles }
}

const isFrom = (object: KubeObject, { origin }: Bundle): boolean => markOf(object, 'movingFrom') === origin

const key = ({ group, kind }: Resource): string => `${kind}.${group}`

const isServed = async (
  mapper: KindMapper,
  { group, version, kind }: Resource,
  signal: AbortSignal,
): Promise<boolean> =>
  (await mapper.find({ apiVersion: group ? `${group}/${version}` : version, kind }, { signal })) !== undefined

const notServed = async (
  mapper: KindMapper,
  client: Client,
  { group, version, kind, plural }: Resource,
  signal: AbortSignal,
): Promise<Obstacle> => {
  const versions = (await mapper.groupVersions({ signal })).filter((one) => one.startsWith(`${group}/`))
  const others: string[] = []
  for (const apiVersion of versions) if (await mapper.find({ apiVersion, kind }, { signal })) others.push(apiVersion)
  const { server } = client.connection
  if (others.length > 0)
    return {
      what: `target ${server} serves ${kind} as ${others.join(', ')} and not as ${group}/${version}, which the source has: its CRD is older`,
      next: `bring the target to the version of the source first, so that CRD ${plural}.${group} serves ${version}`,
    }
  return {
    what: `target ${server} does not know ${kind}: CRD ${plural}.${group} is missing`,
    next: group.startsWith('infrastructure.')
      ? 'install it there: lanyard init --feature-gates=AWSIdentities=true, or the provider that it belongs to'
      : 'install the providers of the source there first',
  }
}

/** How far a thing that is paused has come. `same` was there before, and is no copy: two hubs may be given the same from one place. */
export type Progress = 'absent' | 'coming' | 'arrived' | 'home' | 'same' | 'foreign'

/**
 * `arrived` lets what is left at the source go, and so takes two to say: the target that it came from there, and the source, unless all
 * that is left of it is a directory, that it was on its way.
 */
export const progressOf = (
  bundle: Bundle,
  { resource, object }: Found,
  there: Unstructured | undefined,
  target: Pick<Hub, 'uid'>,
  fromDirectory: boolean,
): Progress => {
  if (!there) return 'absent'
  if (fromDirectory && target.uid === bundle.origin)
    return markOf(there, 'movingTo') === intoDirectory || sameUid(object, there) ? 'home' : 'foreign'
  if (isFrom(there, bundle)) return 'coming'
  const leaving = markOf(object, 'movingTo')
  const left = fromDirectory || leaving === target.uid || leaving === intoDirectory
  if (left && there.metadata.annotations?.[mark.movedFrom] === bundle.origin) return 'arrived'
  return isRecipe(resource) && isDeepStrictEqual(object['spec'], there['spec']) ? 'same' : 'foreign'
}

/** Says how clusters are made and is none: nobody acts for it in AWS. */
const isRecipe = ({ kind }: Resource): boolean => kind === 'ClusterClass' || kind === 'ClusterResourceSet'

const sameUid = (a: KubeObject, b: KubeObject): boolean => a.metadata.uid === b.metadata.uid
