import { isDeepStrictEqual } from 'node:util'
import { annotation, AWSCluster, finalizer } from '../../api/index.ts'
import type { Room } from '../room.ts'
import type { Spec } from './plan.ts'

type Operation = { op: 'test' | 'add' | 'remove'; path: string; value?: unknown }

/** What says that `clusterctl move` is to wait for us. Others may hold it too; theirs is left alone. */
const heldByUs = 'lanyard'

export const holdsMove = ({ metadata }: AWSCluster): boolean =>
  metadata.annotations?.[annotation.blockMove] === heldByUs

/** What the infrastructure changes of a cluster outside of its status. Absent parts stay as they are. */
export interface InfrastructureChange {
  network?: Spec['network']
  controlPlaneEndpoint?: Spec['controlPlaneEndpoint']
  finalizer?: boolean
  /** Keeps `clusterctl move` waiting, or lets it go on. */
  holdMove?: boolean
}

/** The cluster with the change; the same one, and no request, when there is none. Only what it relies on is tested. */
export const changeCluster = async (
  room: Pick<Room, 'client'>,
  cluster: AWSCluster,
  change: InfrastructureChange,
  signal: AbortSignal,
): Promise<AWSCluster> => {
  const { metadata, spec } = cluster
  const json = [
    ...finalizerChange(cluster, change.finalizer),
    ...holdChange(cluster, change.holdMove),
    ...specChange(spec, change),
  ]
  if (json.length === 0) return cluster
  const same: Operation = { op: 'test', path: '/metadata/uid', value: metadata.uid }
  return room.client
    .of(AWSCluster, metadata.namespace)
    .patch(metadata.name!, { json: [same, ...json] }, { fieldManager: 'lanyard', signal })
}

const finalizerChange = ({ metadata }: AWSCluster, wanted: boolean | undefined): Operation[] => {
  const present = metadata.finalizers ?? []
  if (wanted === undefined || present.includes(finalizer.awsCluster) === wanted) return []
  const path = '/metadata/finalizers'
  const left = wanted ? [...present, finalizer.awsCluster] : present.filter((one) => one !== finalizer.awsCluster)
  return [
    { op: 'test', path, value: metadata.finalizers ?? null },
    left.length > 0 ? { op: 'add', path, value: left } : { op: 'remove', path },
  ]
}

const holdChange = (cluster: AWSCluster, wanted: boolean | undefined): Operation[] => {
  const { annotations } = cluster.metadata
  const path = `/metadata/annotations/${annotation.blockMove.replaceAll('/', '~1')}`
  if (wanted === false && holdsMove(cluster))
    return [
      { op: 'test', path, value: heldByUs },
      { op: 'remove', path },
    ]
  if (wanted !== true || annotations?.[annotation.blockMove] !== undefined) return []
  return annotations
    ? [{ op: 'add', path, value: heldByUs }]
    : [
        { op: 'test', path: '/metadata/annotations', value: null },
        { op: 'add', path: '/metadata/annotations', value: { [annotation.blockMove]: heldByUs } },
      ]
}

const specChange = (spec: AWSCluster['spec'], { network, controlPlaneEndpoint }: InfrastructureChange): Operation[] =>
  Object.entries({ network, controlPlaneEndpoint }).flatMap(([field, value]): Operation[] => {
    const present = spec?.[field as 'network']
    if (value === undefined || isDeepStrictEqual(present, value)) return []
    return [
      { op: 'test', path: `/spec/${field}`, value: present ?? null },
      { op: 'add', path: `/spec/${field}`, value },
    ]
  })
