import { isDeepStrictEqual } from 'node:util'
import { group } from '../../api/index.ts'
import { isForbidden, servedResources, type Client, type Resource, type Unstructured } from '../../kube/index.ts'
import { identityResources } from '../contract.ts'
import { idOf, type Found, type Obstacle } from './bundle.ts'
import { isClusterApi } from './discover.ts'
import { classOf, referencesIn } from './graph.ts'
import { nameOf } from './marks.ts'
import type { Prepared } from './prepared.ts'

interface Named {
  group: string | undefined
  kind: string
  name: string
  /** Where it would be, if its kind has namespaces. */
  namespace: string
  by: string
}

/** Kinds of Cluster API and its providers; of the rest nobody here knows what they mean. */
const isKnown = (of: string | undefined): boolean => of === undefined || isClusterApi(of)

const namedBy = (found: Found, home: string): Named[] => {
  const by = nameOf(found.resource, found.object)
  const ofClass = classOf(found)
  return [
    ...referencesIn(found.object['spec']),
    ...(ofClass ? [{ ...ofClass, kind: 'ClusterClass', group: group.clusterApi }] : []),
  ]
    .filter(({ kind, group: of }) => isKnown(of) && !Object.hasOwn(identityResources, kind))
    .map(({ namespace, ...reference }) => ({ ...reference, namespace: namespace ?? home, by }))
}

/**
 * What clusters name and what stays: it belongs to another namespace, such as a ClusterClass for everybody, or to none. It is somebody
 * else's, who may have other plans with it, so it is not copied: it has to be on the target, and to be the same. Otherwise what is made
 * from it would be made anew there.
 */
export const outsideObstacles = async (
  { bundle, source, target }: Pick<Prepared, 'bundle' | 'source' | 'target'>,
  signal: AbortSignal,
): Promise<Obstacle[]> => {
  const inside = new Set(bundle.items.map(({ resource, object }) => `${resource.kind}/${object.metadata.name}`))
  const wanted = bundle.items
    .filter(({ fate }) => fate === 'move')
    .flatMap((item) => namedBy(item, bundle.namespace))
    .filter(({ kind, name, namespace }) => namespace !== bundle.namespace || !inside.has(`${kind}/${name}`))
  if (wanted.length === 0) return []
  const { resources } = await servedResources((source ?? target).client, { signal })
  const seen = new Set<string>()
  const obstacles: Obstacle[] = []
  // The list grows while it is walked: a class names templates.
  for (const named of wanted) {
    const kind = kindOf(named, resources)
    if (!kind || (kind.namespaced && named.namespace === bundle.namespace)) continue
    const id = idOf(kind, kind.namespaced ? named.namespace : undefined, named.name)
    if (seen.has(id)) continue
    seen.add(id)
    const find = async ({ client }: { client: Client }): Promise<Unstructured | undefined | 'hidden'> => {
      try {
        return await client.of(kind, kind.namespaced ? named.namespace : undefined).find(named.name, { signal })
      } catch (error) {
        if (isForbidden(error)) return 'hidden'
        throw error
      }
    }
    const there = await find(target)
    const here = source ? await find(source) : there
    // What is not at the source either is missed there already, and whoever misses it says so.
    if (!here && source) continue
    const name = `${kind.kind} ${kind.namespaced ? `${named.namespace}/` : ''}${named.name}`
    const of = `${named.by} uses ${name}, which is outside of its namespace and does not go along`
    if (here === 'hidden' || there === 'hidden')
      obstacles.push({
        what: `${of}: you may not look at it ${here === 'hidden' ? 'at the source' : 'on the target'}`,
        next: 'whether it is the same on both sides has to be seen: have get granted',
      })
    else if (!there) obstacles.push({ what: `${of}: it is not on the target`, next: `create ${name} there first` })
    else if (!isDeepStrictEqual(here?.['spec'], there['spec']))
      obstacles.push({ what: `${of}: it is another one on the target`, next: `make both ${name} alike first` })
    else wanted.push(...namedBy({ resource: kind, object: there }, named.namespace))
  }
  return obstacles
}

const kindOf = ({ group: of, kind }: Named, served: readonly Resource[]): Resource | undefined =>
  served.find((one) => one.kind === kind && (of === undefined ? isClusterApi(one.group) : one.group === of))
