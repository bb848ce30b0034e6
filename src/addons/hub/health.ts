import { conditionType, type ManagedCluster, type ManagedClusterAddOn, type ManifestWork } from '../../api/index.ts'
import { findCondition, isTrue, type ConditionState } from '../../runtime/index.ts'
import { WorkAvailable } from '../../work/contract.ts'
import { AddOnAvailable } from '../contract.ts'
import type { AddOn } from './definition.ts'
import type { Delivery } from './works.ts'

type ManifestStatus = NonNullable<
  NonNullable<NonNullable<ManifestWork['status']>['resourceStatus']>['manifests']
>[number]

/** When nothing is heard of the cluster, nothing is known of its add-ons; whoever reports their health otherwise. */
export const unknownWith = (cluster: ManagedCluster | undefined): ConditionState | undefined => {
  const available = cluster && findCondition(cluster, conditionType.managedCluster.available)
  if (available?.status !== 'Unknown') return undefined
  return { type: AddOnAvailable.type, status: 'Unknown', reason: available.reason, message: available.message }
}

/** The health of an add-on as its works show it; undefined where its lease does. */
export const healthOf = (
  { health }: AddOn,
  works: readonly ManifestWork[],
  delivery: Delivery,
): ConditionState | undefined => {
  if (health === 'lease') return undefined
  if (works.length === 0) return AddOnAvailable.workNotFound('there is no ManifestWork of the add-on yet')
  if (delivery.state !== 'applied')
    return AddOnAvailable.workNotApplied(
      delivery.state === 'failed' ? delivery.message : 'the manifests are not applied yet',
    )
  if (health === 'work') {
    const missing = works.find((work) => !isTrue(work, WorkAvailable.type))
    return missing
      ? AddOnAvailable.probeUnavailable(`ManifestWork ${missing.metadata.name}: ${messageOf(missing)}`)
      : AddOnAvailable.workApplied('the manifests are applied and there')
  }
  return probed(works.flatMap(({ status }) => status?.resourceStatus?.manifests ?? []))
}

const messageOf = (work: ManifestWork): string =>
  findCondition(work, WorkAvailable.type)?.message ?? 'nothing is known of its objects yet'

/** By the pods of its workloads: at least one that is ready, or as many as should be where that is none. */
const probed = (manifests: readonly ManifestStatus[]): ConditionState => {
  const workloads = manifests.filter(({ resourceMeta }) =>
    ['Deployment', 'DaemonSet'].includes(resourceMeta.kind ?? ''),
  )
  const silent = workloads.filter((one) => readyOf(one) === undefined).map(named)
  if (silent.length > 0) return AddOnAvailable.noProbe(`nothing is reported yet of ${silent.join(', ')}`)
  const down = workloads.filter((one) => readyOf(one) === false).map(named)
  if (down.length > 0) return AddOnAvailable.probeUnavailable(`no pod is ready of ${down.join(', ')}`)
  return workloads.length > 0
    ? AddOnAvailable.probeAvailable(`pods are ready of ${workloads.map(named).join(', ')}`)
    : AddOnAvailable.workApplied('the manifests are applied')
}

const named = ({ resourceMeta: { kind, namespace, name } }: ManifestStatus): string => `${kind} ${namespace}/${name}`

const readyOf = ({ resourceMeta, statusFeedback }: ManifestStatus): boolean | undefined => {
  const value = (name: string): number | undefined =>
    statusFeedback?.values?.find((one) => one.name === name)?.fieldValue.integer
  if (resourceMeta.kind === 'Deployment') {
    const [ready, wanted] = [value('ReadyReplicas'), value('Replicas')]
    return ready === undefined && wanted === undefined ? undefined : (ready ?? 0) > 0 || wanted === 0
  }
  const [ready, wanted] = [value('NumberReady'), value('DesiredNumberScheduled')]
  return wanted === undefined ? undefined : wanted === 0 || (ready ?? 0) > 0
}

/** What goes into `status.healthCheck`: who reports the health. */
export const healthCheckOf = ({
  health,
}: AddOn): NonNullable<NonNullable<ManagedClusterAddOn['status']>['healthCheck']> => ({
  mode: health === 'lease' ? 'Lease' : 'Customized',
})
