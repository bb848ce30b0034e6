import type { AWSCluster } from '../../api/index.ts'
import type { Unstructured } from '../../kube/index.ts'
import type { Clock } from '../../runtime/index.ts'
import { identityKey, referenceOf } from '../contract.ts'
import type { Bundle, Item, Obstacle } from './bundle.ts'
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
  /** Whether the target's controller is asked, by an AWSCluster that is removed again, which accounts it reaches. */
  readonly checkAccount: boolean
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
export const waysOf = (bundle: Pick<Bundle, 'items'>): AWSCluster[] => {
  const clusters = bundle.items
    .filter(({ resource }) => isAwsCluster(resource))
    .map(({ object }) => object as AWSCluster)
  const way = ({ spec, metadata }: AWSCluster): string =>
    JSON.stringify([identityKey(referenceOf({ spec, metadata }), ''), spec?.region, spec?.partition, spec?.accountID])
  return [...new Map(clusters.map((cluster) => [way(cluster), cluster])).values()]
}

/** Tells a person what is under way; each step has a limit of its own. From one with `noWayBack` on, a move can only be completed. */
export interface Steps {
  readonly clock: Clock
  step<T>(
    what: string,
    run: (step: { signal: AbortSignal; seen: (what: string) => void }) => Promise<T>,
    options?: { next?: string; noWayBack?: boolean },
  ): Promise<T>
}

/** Something stands in the way; nothing was changed at the source. */
export class MoveRefused extends Error {
  override name = 'MoveRefused'
  readonly obstacles: readonly Obstacle[]

  constructor(obstacles: readonly Obstacle[]) {
    super(obstacles.map(({ what, next }) => `${what}; ${next}`).join('\n'))
    this.obstacles = obstacles
  }
}
