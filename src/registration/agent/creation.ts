import { annotation, group, ManagedCluster } from '../../api/index.ts'
import { isAlreadyExists, isForbidden, isNotFound, isUnauthorized, type Api } from '../../kube/index.ts'
import { stalled, type TerminalError } from '../../runtime/index.ts'
import { idClaim } from '../contract.ts'
import type { AgentDriver } from '../drivers/driver.ts'

/** On a ManagedCluster that an agent made: which cluster it is, before it can say so in a claim. */
export const clusterIdAnnotation = `${annotation.agentPrefix}/cluster-id`

export interface CreationOptions {
  name: string
  clusterId: string
  /** Other ids that the cluster is known by: the value of its own ClusterClaim. */
  otherIds?: readonly string[] | undefined
  annotations?: Readonly<Record<string, string>> | undefined
  clientConfigs?: readonly { url: string; caBundle?: string | undefined }[] | undefined
  driver: AgentDriver
  signal: AbortSignal
}

/** The ManagedCluster that asks the hub to let us in. */
export const newManagedCluster = (options: CreationOptions): ManagedCluster => {
  const { name, clusterId, annotations = {}, clientConfigs, driver } = options
  const allowed = Object.entries(annotations).filter(([key]) => key.startsWith(annotation.agentPrefix))
  return driver.describe({
    metadata: { name, annotations: { ...Object.fromEntries(allowed), [clusterIdAnnotation]: clusterId } },
    spec: {
      hubAcceptsClient: false,
      leaseDurationSeconds: 60,
      ...(clientConfigs?.length ? { managedClusterClientConfigs: clientConfigs.map((config) => ({ ...config })) } : {}),
    },
  })
}

/**
 * Makes the ManagedCluster if there is none, with no more than get and create: that is all a bootstrap user may do. One that
 * is there already is ours, unless it says that it is another cluster.
 */
export const ensureManagedCluster = async (hub: Api, options: CreationOptions): Promise<ManagedCluster> => {
  const clusters = hub.of(ManagedCluster)
  const { name, signal } = options
  try {
    const present =
      (await clusters.find(name, { signal })) ?? (await clusters.create(newManagedCluster(options), { signal }))
    return ours(present, options, hub)
  } catch (error) {
    if (isAlreadyExists(error)) return ours(await clusters.get(name, { signal }), options, hub)
    throw explained(error, hub, name)
  }
}

const ours = (
  cluster: ManagedCluster,
  { name, clusterId, otherIds = [] }: CreationOptions,
  hub: Api,
): ManagedCluster => {
  const id = idOf(cluster)
  if (id === undefined || id === clusterId || otherIds.includes(id)) return cluster
  throw stalled('ClusterNameTaken', {
    message: `the name ${name} is taken on hub ${hub.connection.server}: it belongs to the cluster with id ${id}, and this one is ${clusterId}`,
    next: `choose another cluster name, or if that cluster is no more, delete its ManagedCluster: kubectl delete managedcluster ${name}`,
  })
}

/** Which cluster it says it is: by its claim, else by what its agent wrote when it made it. */
export const idOf = ({ metadata, status }: ManagedCluster): string | undefined =>
  status?.clusterClaims?.find(({ name }) => name === idClaim)?.value ?? metadata.annotations?.[clusterIdAnnotation]

/** What a person has to do about a hub that does not let us ask. */
const explained = (error: unknown, hub: Api, name: string): unknown => {
  const { server, source } = hub.connection
  const fail = (reason: string, message: string, next: string): TerminalError =>
    stalled(reason, { message, next, cause: error })
  if (isUnauthorized(error))
    return fail(
      'BootstrapCredentialRefused',
      `hub ${server} does not know the credential of ${source}: it is expired, revoked or from another cluster`,
      'write a new bootstrap kubeconfig into the secret; clusteradm get token on the hub prints one',
    )
  if (isForbidden(error))
    return fail(
      'BootstrapForbidden',
      `the user of ${source} may not ask hub ${server} to let cluster ${name} in (${error.serverMessage})`,
      'on the hub, bind it to ClusterRole open-cluster-management:bootstrap: it needs create, get, list and watch for managedclusters and certificatesigningrequests',
    )
  // A create that finds nothing: the kind itself is missing.
  if (isNotFound(error))
    return fail(
      'NotAHub',
      `${server} of ${source} is no hub: it does not serve managedclusters of ${group.cluster}`,
      'check the server in the bootstrap kubeconfig, or prepare that cluster with clusteradm init',
    )
  return error
}
