import { conditionType, label, type ClusterProfile, type ManagedCluster } from '../../api/index.ts'
import { condition, findCondition, setConditions, type ConditionState } from '../../runtime/index.ts'
import { addressOf } from '../tokens/index.ts'

/** What consumers of the field look for. */
export const managerName = 'open-cluster-management'
export const profileLabel = {
  manager: 'x-k8s.io/cluster-manager',
  clusterSet: 'multicluster.x-k8s.io/clusterset',
} as const

/** The plug-in that gives the credential: consumers say that it is `lanyard token --name ACCOUNT`, with provideClusterInfo. */
export const providerName = 'lanyard'
/** What an exec plug-in finds in KUBERNETES_EXEC_INFO as spec.cluster.config. */
const execExtension = 'client.authentication.k8s.io/exec'

type Status = NonNullable<ClusterProfile['status']>

const Healthy = condition(conditionType.clusterProfile.controlPlaneHealthy, {
  unknown: { status: 'Unknown', reason: 'NotReported', message: 'the agent of the cluster has reported nothing yet' },
})
const Joined = condition(conditionType.clusterProfile.joined, {
  unknown: { status: 'Unknown', reason: 'NotReported', message: 'the agent of the cluster has reported nothing yet' },
})

/** Whether a profile is one that we keep, for the cluster of its name. Those of other managers are never touched. */
export const isOurs = ({ metadata, spec }: ClusterProfile): boolean =>
  spec.clusterManager.name === managerName &&
  metadata.labels?.[profileLabel.manager] === managerName &&
  metadata.labels[label.clusterName] === metadata.name

/** The profile of a cluster in a namespace, without its status. */
export const profileOf = (namespace: string, { metadata }: ManagedCluster): ClusterProfile => {
  const name = metadata.name!
  const set = metadata.labels?.[label.clusterSet]
  return {
    metadata: {
      name,
      namespace,
      labels: {
        [profileLabel.manager]: managerName,
        [label.clusterName]: name,
        ...(set && { [profileLabel.clusterSet]: set }),
      },
    },
    spec: { displayName: name, clusterManager: { name: managerName } },
  }
}

/** What it reports. Ways into the cluster that others have added stay. */
export const statusOf = (profile: ClusterProfile, cluster: ManagedCluster, now: number): Status => {
  const { status = {} } = cluster
  const as = (type: string, from: string, otherwise: ConditionState): ConditionState => {
    const said = findCondition(cluster, from)
    return said ? { type, status: said.status, reason: said.reason, message: said.message } : otherwise
  }
  const { generation } = profile.metadata
  const states = [
    as(Healthy.type, conditionType.managedCluster.available, Healthy.unknown()),
    as(Joined.type, conditionType.managedCluster.joined, Joined.unknown()),
  ]
  const others = profile.status?.accessProviders?.filter(({ name }) => name !== providerName) ?? []
  return {
    conditions: setConditions(profile.status?.conditions, states, { now, generation }),
    version: { kubernetes: status.version?.kubernetes ?? '' },
    properties: (status.clusterClaims ?? []).map(({ name, value }) => ({ name, value })),
    accessProviders: [...others, ...accessTo(cluster)],
  }
}

const accessTo = (cluster: ManagedCluster): NonNullable<Status['accessProviders']> => {
  const address = addressOf(cluster)
  if (!address) return []
  const ca = address.ca && Buffer.from(address.ca).toString('base64')
  return [
    {
      name: providerName,
      cluster: {
        server: address.server,
        ...(ca && { 'certificate-authority-data': ca }),
        extensions: [{ name: execExtension, extension: { clusterName: cluster.metadata.name! } }],
      },
    },
  ]
}
