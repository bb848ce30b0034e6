import type { AWSCluster } from '../../api/index.ts'
import type { Unstructured } from '../../kube/index.ts'
import { identityKey, referenceOf } from '../contract.ts'
import type { Bundle, Item } from './bundle.ts'
import type { Hub } from './discover.ts'
import { isAwsCluster } from './graph.ts'
import { idThere, progressOf, type Present, type Progress } from './target.ts'
import { asOnTarget } from './translate.ts'

/** A move that has been looked at from both sides. */
export interface Prepared {
  /** Undefined when it comes from a directory. */
  readonly source: Hub | undefined
  readonly target: Hub
  readonly bundle: Bundle
  readonly present: Present
  readonly options: MoveOptions
}

export interface MoveOptions {
  /** Identities that are on the target already may allow other namespaces than at the source. */
  readonly keepAllowedNamespaces: boolean
  /** Where clusters act that name no region. */
  readonly defaultRegion: string
}

/** How far one of its things has come. */
export const progressIn = (
  { bundle, present, target, source }: Pick<Prepared, 'bundle' | 'present' | 'target' | 'source'>,
  item: Item,
): Progress =>
  progressOf(bundle, item, present.objects.get(idThere(bundle, item, target)), target, source === undefined)

/** As it is written, for comparison: its owners are known only when they are there. */
export const wantedOf = ({ bundle, target }: Prepared, item: Item): Unstructured =>
  asOnTarget(bundle, item, { controllerNamespace: target.controllerNamespace, uidOf: () => undefined })

/** Each way into AWS that clusters of a bundle take, once. */
export const waysOf = (bundle: Bundle): AWSCluster[] => {
  const clusters = bundle.items
    .filter(({ resource }) => isAwsCluster(resource))
    .map(({ object }) => object as AWSCluster)
  const way = ({ spec, metadata }: AWSCluster): string =>
    JSON.stringify([identityKey(referenceOf({ spec, metadata }), ''), spec?.region, spec?.partition, spec?.accountID])
  return [...new Map(clusters.map((cluster) => [way(cluster), cluster])).values()]
}
