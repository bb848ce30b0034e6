import { annotation, group } from '../../api/index.ts'
import { keyOf, type KubeObject, type Resource } from '../../kube/index.ts'

/** What a move leaves on the objects that it pauses, so that the next run knows where the last one stopped. */
export const mark = {
  /** At the source: paused by a move to the cluster with this id, or into a directory. */
  movingTo: 'move.lanyard.io/moving-to',
  /** At the source, for people: the address of that cluster. */
  movingToServer: 'move.lanyard.io/moving-to-server',
  /** On the target: still paused, brought from the cluster with this id. */
  movingFrom: 'move.lanyard.io/moving-from',
  /** On the target: arrived, and acted for there. What is left of it at the source may go. */
  movedFrom: 'move.lanyard.io/moved-from',
  /** On the target: made by a move, of the object that has this uid at the source. Only that may be taken away when a move is given up. */
  copyOf: 'move.lanyard.io/copy-of',
} as const

/** In place of a cluster's id: nobody has said yet where it goes. */
export const intoDirectory = 'directory'

/** In place of a cluster's id: it was on its way there, and is coming back. */
export const givingUp = (to: string): string => `given-up:${to}`

/** Says that an AWSCluster is only a question to the target's controller: nothing is built for it. */
export const askedByMove = 'lanyard-move'

export const markOf = ({ metadata }: KubeObject, of: keyof typeof mark): string | undefined =>
  metadata.annotations?.[mark[of]]

/** Kinds that are paused themselves; whatever else there is stands still with the Cluster that it belongs to. */
export const isPausable = ({ group: of, kind }: Pick<Resource, 'group' | 'kind'>): boolean =>
  (of === group.clusterApi && (kind === 'Cluster' || kind === 'ClusterClass')) ||
  // It would be applied to clusters again where its bindings have not arrived yet.
  (of === 'addons.cluster.x-k8s.io' && kind === 'ClusterResourceSet') ||
  (of === group.infrastructure && kind === 'AWSCluster')

/** A Cluster of Cluster API says in its spec that it is paused, the others in an annotation. */
export const pausesBySpec = ({ group: of, kind }: Pick<Resource, 'group' | 'kind'>): boolean =>
  of === group.clusterApi && kind === 'Cluster'

/** Whether somebody has paused it, in whatever way. */
export const isPaused = (object: KubeObject & { spec?: unknown }): boolean =>
  Object.hasOwn(object.metadata.annotations ?? {}, annotation.paused) ||
  (object.spec as { paused?: boolean } | undefined)?.paused === true

/** Whether it is paused as a move pauses it. An annotation on a Cluster stops who follows the Cluster, and nobody who follows its machines. */
export const standsStill = (
  resource: Pick<Resource, 'group' | 'kind'>,
  object: KubeObject & { spec?: unknown },
): boolean =>
  pausesBySpec(resource)
    ? (object.spec as { paused?: boolean } | undefined)?.paused === true
    : Object.hasOwn(object.metadata.annotations ?? {}, annotation.paused)

/** `AWSCluster team-a/prod`, as messages name things. */
export const nameOf = ({ kind }: Pick<Resource, 'kind'>, object: KubeObject): string => `${kind} ${keyOf(object)}`
