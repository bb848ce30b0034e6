import { annotation, group } from '../../api/index.ts'
import { keyOf, type KubeObject, type Resource } from '../../kube/index.ts'

/** What a move leaves on the objects that it pauses, so that the next run knows where the last one stopped. */
export const mark = {
  /** At the source: paused by a move to the cluster with this id, or into a directory. */
  movingTo: 'move.lanyard.io/moving-to',
  /** On the target: still paused, brought from the cluster with this id. */
  movingFrom: 'move.lanyard.io/moving-from',
  /** On the target: arrived, and acted for there. What is left of it at the source may go. */
  movedFrom: 'move.lanyard.io/moved-from',
} as const

/** In place of a cluster's id: nobody has said yet where it goes. */
export const intoDirectory = 'directory'

/** Says that an AWSCluster is only a question to the target's controller: nothing is built for it. */
export const askedByMove = 'lanyard-move'

export const markOf = ({ metadata }: KubeObject, of: keyof typeof mark): string | undefined =>
  metadata.annotations?.[mark[of]]

/** Kinds that are paused themselves; whatever else there is stands still with the Cluster that it belongs to. */
export const isPausable = ({ group: of, kind }: Pick<Resource, 'group' | 'kind'>): boolean =>
  (of === group.clusterApi && (kind === 'Cluster' || kind === 'ClusterClass')) ||
  (of === group.infrastructure && kind === 'AWSCluster')

/** A Cluster of Cluster API says in its spec that it is paused, the others in an annotation. */
export const pausesBySpec = ({ group: of, kind }: Pick<Resource, 'group' | 'kind'>): boolean =>
  of === group.clusterApi && kind === 'Cluster'

export const isPaused = (object: KubeObject & { spec?: unknown }): boolean =>
  Object.hasOwn(object.metadata.annotations ?? {}, annotation.paused) ||
  (object.spec as { paused?: boolean } | undefined)?.paused === true

/** `AWSCluster team-a/prod`, as messages name things. */
export const nameOf = ({ kind }: Pick<Resource, 'kind'>, object: KubeObject): string => `${kind} ${keyOf(object)}`
