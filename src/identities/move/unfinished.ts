import { group, label } from '../../api/index.ts'
import type { Condition, KubeObject } from '../../kube/index.ts'
import type { Bundle, Found, Obstacle } from './bundle.ts'
import { groupOf, isAwsCluster } from './graph.ts'
import { nameOf } from './marks.ts'

/** What Cluster API says of its own objects: up to v1beta1 in fields of the status, from v1beta2 in `initialization`, by conditions in both. */
interface Said extends KubeObject {
  spec?: { clusterName?: string; controlPlaneRef?: Reference; infrastructureRef?: Reference }
  status?: {
    infrastructureReady?: boolean
    controlPlaneReady?: boolean
    initialization?: { infrastructureProvisioned?: boolean; controlPlaneInitialized?: boolean }
    conditions?: Condition[]
    /** Where a v1beta1 object has the conditions of v1beta2. */
    v1beta2?: { conditions?: Condition[] }
    nodeRef?: { name?: string }
  }
}

interface Reference {
  apiVersion?: string
  apiGroup?: string
  kind?: string
  name?: string
}

const controlPlaneLabel = 'cluster.x-k8s.io/control-plane'

const isOf = ({ resource }: Found, kind: string): boolean =>
  resource.kind === kind && resource.group === group.clusterApi

/** The condition of either contract. */
export const saidOf = ({ object }: Found, type: string): Condition['status'] | undefined => {
  const { conditions = [], v1beta2 } = (object as Said).status ?? {}
  return [...(v1beta2?.conditions ?? []), ...conditions].find((condition) => condition.type === type)?.status
}

const statusOf = ({ object }: Found): NonNullable<Said['status']> => (object as Said).status ?? {}

/** The name of the Cluster that a thing of Cluster API belongs to, or is. */
export const clusterNameOf = (found: Found): string | undefined => {
  const { metadata, spec } = found.object as Said
  if (isOf(found, 'Cluster')) return metadata.name
  return spec?.clusterName ?? metadata.labels?.[label.clusterApiClusterName]
}

const isInitialized = (cluster: Found): boolean => {
  const { controlPlaneReady, initialization } = statusOf(cluster)
  return (
    controlPlaneReady === true ||
    initialization?.controlPlaneInitialized === true ||
    saidOf(cluster, 'ControlPlaneInitialized') === 'True'
  )
}

const isProvisioned = (cluster: Found): boolean => {
  const { infrastructureReady, initialization } = statusOf(cluster)
  return (
    infrastructureReady === true ||
    initialization?.infrastructureProvisioned === true ||
    saidOf(cluster, 'InfrastructureReady') === 'True'
  )
}

/** An AWSCluster goes on anywhere: whatever was made for it is found again by its tags. Of others nobody can know that here. */
const goesOnAnywhere = ({ apiVersion, apiGroup, kind = '' }: Reference): boolean =>
  isAwsCluster({ kind, group: apiGroup ?? groupOf(apiVersion ?? '') })

interface Facts {
  item: Found
  /** Clusters that have Machines for their control plane. */
  controlled: ReadonlySet<string | undefined>
}

/** Whoever makes one of these keeps in mind how far it is; that would be lost on the way. The first that objects says why. */
const checks: ((facts: Facts) => Obstacle | false)[] = [
  ({ item, controlled }) =>
    isOf(item, 'Cluster') &&
    ((item.object as Said).spec?.controlPlaneRef !== undefined || controlled.has(item.object.metadata.name)) &&
    !isInitialized(item) && {
      what: `the control plane of ${nameOf(item.resource, item.object)} is still being made`,
      next: 'wait until its status says that the control plane is initialized, or delete the cluster',
    },
  ({ item }) => {
    const { infrastructureRef } = (item.object as Said).spec ?? {}
    return (
      isOf(item, 'Cluster') &&
      infrastructureRef !== undefined &&
      !goesOnAnywhere(infrastructureRef) &&
      !isProvisioned(item) && {
        what: `${infrastructureRef.kind} ${infrastructureRef.name}, the infrastructure of ${nameOf(item.resource, item.object)}, is still being made`,
        next: 'wait until the status of the cluster says that its infrastructure is ready, or delete the cluster',
      }
    )
  },
  ({ item }) =>
    isOf(item, 'Machine') &&
    !statusOf(item).nodeRef?.name && {
      what: `${nameOf(item.resource, item.object)} has no node yet`,
      next: 'wait until the machine is there, or delete it',
    },
]

/** What is in the middle of being made. `underWay` are Clusters that a move has paused: nothing of theirs gets any further here. */
export const unfinishedIn = ({ items }: Pick<Bundle, 'items'>, underWay: ReadonlySet<string>): Obstacle[] => {
  const moved = items.filter(({ fate }) => fate === 'move')
  const controlled = new Set(
    moved
      .filter((item) => isOf(item, 'Machine') && Object.hasOwn(item.object.metadata.labels ?? {}, controlPlaneLabel))
      .map(clusterNameOf),
  )
  return moved.flatMap((item) => {
    if (underWay.has(clusterNameOf(item) ?? '')) return []
    return checks.map((check) => check({ item, controlled })).find((obstacle) => obstacle !== false) ?? []
  })
}
