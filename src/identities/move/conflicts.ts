import { ApiError, isAlreadyExists, type Secret, type Unstructured } from '../../kube/index.ts'
import { differs, inParallel } from '../../runtime/index.ts'
import { accessKeyOf } from '../access-keys.ts'
import { identityResources } from '../contract.ts'
import type { Item, Obstacle } from './bundle.ts'
import { isPausable, nameOf } from './marks.ts'
import { progressIn, wantedOf, type Prepared } from './prepared.ts'
import { idThere } from './target.ts'
import { identityDifferences, isCredential } from './translate.ts'

/** What is on the target under the name of something that comes, and is not the same; and what would have to be there. */
export const conflictOf = (move: Prepared, item: Item): Obstacle[] => {
  const there = move.present.objects.get(idThere(move.bundle, item, move.target))
  return there ? conflict(move, item, there) : absence(item)
}

const absence = (item: Item): Obstacle[] =>
  item.withheld
    ? [
        {
          what: `${nameOf(item.resource, item.object)} was exported without its content and is not on the target`,
          next: 'create it there first, or export again with --include-secrets',
        },
      ]
    : []

const conflict = (move: Prepared, item: Item, there: Unstructured): Obstacle[] => {
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
    !differs(withoutMetadata(wanted), there) ||
    bundle.items.some((one) => isPausable(one.resource) && onItsWay(move, one))
  )
    return []
  return [{ what: `${name} exists on the target with another content`, next: 'rename or remove one of the two' }]
}

const withoutMetadata = (object: Unstructured): Unstructured => ({
  ...object,
  metadata: { name: object.metadata.name },
})

const onItsWay = (move: Prepared, item: Item): boolean => ['coming', 'arrived', 'home'].includes(progressIn(move, item))

/** The target is asked to make each thing without making it: what its schemas and webhooks would refuse later is said now. */
export const refusals = async (move: Prepared, signal: AbortSignal): Promise<Obstacle[]> => {
  const { bundle, present, target } = move
  const obstacles: Obstacle[] = []
  const absent = bundle.items.filter((item) => !item.withheld && !present.objects.has(idThere(bundle, item, target)))
  await inParallel(
    16,
    absent.map((item) => async () => {
      const wanted = wantedOf(move, item)
      // Nothing can be tried in a namespace that is not there yet; what is checked does not depend on which one it is.
      const at = wanted.metadata.namespace && !present.namespace ? { namespace: 'default' } : {}
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
