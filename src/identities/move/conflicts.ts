import { AWSCluster } from '../../api/index.ts'
import { ApiError, isAlreadyExists, keyOf, Namespace, type Secret, type Unstructured } from '../../kube/index.ts'
import { differs, inParallel, isTrue } from '../../runtime/index.ts'
import { accessKeyOf } from '../access-keys.ts'
import { accountRecorded, identityResources } from '../contract.ts'
import type { Item, Obstacle } from './bundle.ts'
import { isAwsCluster } from './graph.ts'
import { isPausable, markOf, nameOf } from './marks.ts'
import { progressIn, wantedOf, type Prepared } from './prepared.ts'
import { isLeaving } from './release.ts'
import { idThere } from './target.ts'
import { identityDifferences, isCopy, isCredential } from './translate.ts'

/** What is on the target under the name of something that comes, and is not the same; and what would have to be there. */
export const conflictOf = (move: Prepared, item: Item): Obstacle[] => {
  const there = move.present.objects.get(idThere(move.bundle, item, move.target))
  return there ? conflictWith(move, item, there) : absence(item)
}

const absence = (item: Item): Obstacle[] => {
  const name = nameOf(item.resource, item.object)
  if (item.withheld)
    return [
      {
        what: `${name} was exported without its content and is not on the target`,
        next: 'create it there first, or export again with --include-secrets',
      },
    ]
  if (isLeaving(item) && markOf(item.object, 'movingTo') !== undefined)
    return [
      {
        what: `${name} is being deleted, and a move has paused it`,
        next: 'give the move up with --abort, and wait until it is gone: its own hub has to remove what it has',
      },
    ]
  return []
}

/** Why what is there cannot take the place of what comes; empty when it can, or is it. */
export const conflictWith = (move: Prepared, item: Item, there: Unstructured): Obstacle[] => {
  const { bundle, target, options } = move
  const name = nameOf(item.resource, there)
  if (isPausable(item.resource)) {
    if (progressIn(move, item) !== 'foreign') return []
    return [
      {
        what: `${name} exists on the target and did not come from this source`,
        next: 'rename or remove one of the two: names are kept in a move',
      },
    ]
  }
  if (item.withheld) return []
  const wanted = wantedOf(move, item)
  if (Object.hasOwn(identityResources, item.resource.kind)) {
    const differences = identityDifferences(wanted, there, target.controllerNamespace).filter(
      ({ field }) => !(options.keepAllowedNamespaces && field === 'spec.allowedNamespaces'),
    )
    if (differences.length === 0) return []
    return [
      {
        what: `${name} exists on the target with another content: ${differences.map(({ field, source, target: has }) => `${field} is ${source} at the source and ${has} on the target`).join('; ')}`,
        next: differences.every(({ field }) => field === 'spec.allowedNamespaces')
          ? 'make them alike, or keep who may use it on the target as it is: --keep-allowed-namespaces'
          : 'clusters would become somebody else in AWS: make them alike, or give one of them another name',
      },
    ]
  }
  if (isCredential(item)) {
    const same = JSON.stringify(accessKeyOf(item.object as Secret)) === JSON.stringify(accessKeyOf(there as Secret))
    if (same) return []
    return [
      {
        what: `${name} exists on the target and holds another access key`,
        next: 'put the same key into both, or let the identity name another secret',
      },
    ]
  }
  if (
    isCopy(item, there) ||
    !differs(withoutMetadata(wanted), there) ||
    bundle.items.some((one) => isPausable(one.resource) && hasArrived(move, one))
  )
    return []
  return [
    {
      what: `${name} exists on the target with another content, and is no copy`,
      next: 'make them alike, or rename or remove one of the two',
    },
  ]
}

const withoutMetadata = (object: Unstructured): Unstructured => ({
  ...object,
  metadata: { name: object.metadata.name },
})

/** From then on whoever acts there changes what is there. */
const hasArrived = (move: Prepared, item: Item): boolean => ['arrived', 'home'].includes(progressIn(move, item))

/** Namespaces that things go into and that are not on the target yet. */
export const missingNamespaces = async (move: Prepared, signal: AbortSignal): Promise<Set<string>> => {
  const { bundle, present, target } = move
  const names = new Set(bundle.items.flatMap((item) => wantedOf(move, item).metadata.namespace ?? []))
  const missing = new Set<string>()
  for (const name of names) {
    const there =
      name === bundle.namespace ? present.namespace : await target.client.of(Namespace).find(name, { signal })
    if (!there) missing.add(name)
  }
  return missing
}

/** Names that clusters of another namespace have on the target already, in the same account and region: the newcomer would not be built. */
export const takenPlaces = async (move: Prepared, signal: AbortSignal): Promise<Obstacle[]> => {
  const { bundle, target, options } = move
  const coming = bundle.items.filter((item) => isAwsCluster(item.resource) && progressIn(move, item) === 'absent')
  if (coming.length === 0) return []
  const { items } = await target.client.of(AWSCluster).list({ signal })
  const placeOf = ({ metadata, spec }: AWSCluster): string =>
    JSON.stringify([spec?.accountID, spec?.region || options.defaultRegion, metadata.name])
  const holders = new Map(items.filter((one) => isTrue(one, accountRecorded)).map((one) => [placeOf(one), one]))
  return coming.flatMap(({ resource, object }) => {
    const holder = holders.get(placeOf(object))
    if (!holder || holder.metadata.namespace === bundle.namespace) return []
    return [
      {
        what: `${nameOf(resource, object)} would not be built on the target: AWSCluster ${keyOf(holder)} has its name there, in account ${holder.spec?.accountID} and the same region`,
        next: 'move or remove that one first: AWS looks clusters up by their name',
      },
    ]
  })
}

/** The target is asked to make each thing without making it: what its schemas and webhooks would refuse later is said now. */
export const refusals = async (
  move: Prepared,
  missing: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<Obstacle[]> => {
  const { bundle, present, target } = move
  // A webhook may have something against the controller's own namespace, and only against that.
  const anywhere = target.controllerNamespace === 'default' ? 'kube-public' : 'default'
  const obstacles: Obstacle[] = []
  const absent = bundle.items.filter((item) => !item.withheld && !present.objects.has(idThere(bundle, item, target)))
  await inParallel(
    16,
    absent.map((item) => async () => {
      const wanted = wantedOf(move, item)
      // Nothing can be tried in a namespace that is not there yet; what is checked does not depend on which one it is.
      const at = missing.has(wanted.metadata.namespace ?? '') ? { namespace: anywhere } : {}
      const tried = { ...wanted, metadata: { ...wanted.metadata, ...at } }
      try {
        const answer = await target.client
          .of(item.resource, tried.metadata.namespace)
          .create(tried, { dryRun: true, signal })
        const lost = lostFields(wanted['spec'], answer['spec'], 'spec')
        if (lost.length > 0)
          obstacles.push({
            what: `${nameOf(item.resource, item.object)}: the CRD of the target does not know ${lost.slice(0, 5).join(', ')}, which would be lost`,
            next: 'bring the target to the version of the source first',
          })
      } catch (error) {
        if (isAlreadyExists(error)) return
        if (!(error instanceof ApiError) || error.status >= 500) throw error
        obstacles.push({
          what: `the target refuses ${nameOf(item.resource, item.object)}: ${error.serverMessage}`,
          next: 'correct it at the source, or bring the target to the version of the source',
        })
      }
    }),
  )
  return obstacles
}

/** Paths that were written and did not come back. */
export const lostFields = (wanted: unknown, got: unknown, path: string): string[] => {
  if (typeof wanted !== 'object' || wanted === null)
    return got === undefined && wanted !== undefined && wanted !== null ? [path] : []
  if (typeof got !== 'object' || got === null) return Object.keys(wanted).length > 0 ? [path] : []
  return Object.entries(wanted).flatMap(([key, value]) =>
    lostFields(
      value,
      (got as Record<string, unknown>)[key],
      Array.isArray(wanted) ? `${path}[${key}]` : `${path}.${key}`,
    ),
  )
}
