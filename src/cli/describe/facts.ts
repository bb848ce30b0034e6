import { X509Certificate } from 'node:crypto'
import {
  annotation,
  ClusterPermission,
  conditionType,
  label,
  ManagedClusterAddOn,
  ManagedServiceAccount,
  ManifestWork,
  type ManagedCluster,
} from '../../api/index.ts'
import {
  CertificateSigningRequest,
  isForbidden,
  isNotFound,
  Lease,
  type Client,
  type Condition,
  type KubeObject,
  type Resource,
} from '../../kube/index.ts'
import { idOf } from '../../registration/agent/index.ts'
import { CertificateRotated, groupsOf, leaseName } from '../../registration/contract.ts'
import { holderOf } from '../../registration/drivers/index.ts'
import { findCondition } from '../../runtime/index.ts'

type Reporting = KubeObject & { status?: { conditions?: Condition[] | undefined } | undefined }

/** How a condition stands, and why if not well. */
const stateOf = (object: Reporting, type: string): string => findCondition(object, type)?.status ?? 'Unknown'

/** Everything that a hub knows of a cluster, as -o json and yaml print it. */
export const factsAbout = async (client: Client, cluster: ManagedCluster, signal: AbortSignal) => {
  const name = cluster.metadata.name!
  const hidden: string[] = []
  const listed = async <T extends KubeObject>(of: Resource<T>, options = {}): Promise<T[]> => {
    try {
      const { items } = await client.of(of, of.namespaced ? name : undefined).list({ ...options, signal })
      return items
    } catch (error) {
      if (isForbidden(error)) hidden.push(of.plural)
      else if (!isNotFound(error)) throw error
      return []
    }
  }
  const [agent, requests, leases, addOns, works, permissions, accounts] = await Promise.all([
    holderOf(client, name, signal).catch((error: unknown) => {
      if (!isForbidden(error)) throw error
      hidden.push('namespaces')
      return undefined
    }),
    listed(CertificateSigningRequest, { labelSelector: `${label.clusterName}=${name}` }),
    listed(Lease, { fieldSelector: `metadata.name=${leaseName}` }),
    listed<ManagedClusterAddOn>(ManagedClusterAddOn),
    listed<ManifestWork>(ManifestWork),
    listed<ClusterPermission>(ClusterPermission),
    listed<ManagedServiceAccount>(ManagedServiceAccount),
  ])
  const byName = <T extends { name: string }>(all: T[]): T[] => all.toSorted((a, b) => a.name.localeCompare(b.name))
  const { metadata, spec, status } = cluster
  return {
    name,
    created: metadata.creationTimestamp ?? '',
    clusterSet: metadata.labels?.[label.clusterSet] ?? '',
    kubernetes: status?.version?.kubernetes ?? '',
    urls: spec.managedClusterClientConfigs?.map(({ url }) => url) ?? [],
    identity: {
      ...identityOf(cluster),
      id: idOf(cluster) ?? '',
      agent: agent ?? '',
      groups: groupsOf(name),
      accepted: spec.hubAcceptsClient ?? false,
      acceptedAutomaticallyOn: metadata.annotations?.[annotation.automaticallyAcceptedOn] ?? '',
    },
    credential: {
      expires: expiryOf(requests.filter((one) => !one.metadata.labels?.[label.addOnName])) ?? saidExpiry(cluster) ?? '',
      said: findCondition(cluster, CertificateRotated.type)?.message ?? '',
      requests: byName(
        requests
          .filter((one) => !one.metadata.labels?.[label.addOnName])
          .map((one) => ({ name: one.metadata.name!, state: requestState(one), by: one.spec.username ?? '' })),
      ),
    },
    heartbeat: leases[0]?.spec.renewTime ?? '',
    conditions: status?.conditions ?? [],
    taints: spec.taints?.map(({ key, effect }) => `${key}:${effect}`) ?? [],
    addOns: byName(addOns.map((one) => addOnFacts(one, requests))),
    works: byName(
      works.map((one) => ({
        name: one.metadata.name!,
        manifests: one.spec.workload?.manifests?.length ?? 0,
        applied: stateOf(one, conditionType.manifestWork.applied),
        available: stateOf(one, conditionType.manifestWork.available),
        problem: problemIn(one, conditionType.manifestWork.applied),
      })),
    ),
    permissions: byName(
      permissions.map((one) => ({
        name: one.metadata.name!,
        authorized: stateOf(one, conditionType.clusterPermission.authorized),
        by: one.status?.authorization?.by ?? '',
        applied: stateOf(one, conditionType.clusterPermission.workApplied),
        problem:
          problemIn(one, conditionType.clusterPermission.validation) ||
          problemIn(one, conditionType.clusterPermission.authorized) ||
          problemIn(one, conditionType.clusterPermission.workApplied),
      })),
    ),
    serviceAccounts: byName(
      accounts.map((one) => ({
        name: one.metadata.name!,
        reported: stateOf(one, conditionType.managedServiceAccount.tokenReported),
        expires: one.status?.expirationTimestamp ?? '',
        secret: one.status?.tokenSecretRef?.name ?? '',
        rotates: one.spec?.rotation?.enabled !== false,
      })),
    ),
    /** What you may not look at. */
    hidden,
  }
}

export type ClusterFacts = Awaited<ReturnType<typeof factsAbout>>

const problemIn = (object: Reporting, type: string): string => {
  const said = findCondition(object, type)
  return said?.status === 'False' ? said.message : ''
}

/** An ARN on the object is how a cluster asks to be known by its AWS role. */
const identityOf = ({ metadata }: ManagedCluster): { strategy: string; arn: string } => {
  const { annotations = {} } = metadata
  const arn = annotations[annotation.eksManagedClusterArn] ?? annotations[annotation.managedClusterArn] ?? ''
  return { strategy: arn ? 'awsirsa' : 'csr', arn }
}

const requestState = ({ status }: CertificateSigningRequest): string => {
  const said = ['Denied', 'Failed', 'Approved'].find((type) => status?.conditions?.some((one) => one.type === type))
  return said === 'Approved' && status?.certificate ? 'Issued' : (said ?? 'Pending')
}

/** When the latest of the certificates ends that the hub still remembers: it forgets requests after an hour. */
const expiryOf = (requests: readonly CertificateSigningRequest[]): string | undefined => {
  const ends = requests.flatMap(({ status }) => {
    if (!status?.certificate) return []
    try {
      return [Date.parse(new X509Certificate(Buffer.from(status.certificate, 'base64')).validTo)]
    } catch {
      return [] // another signer may issue something else
    }
  })
  return ends.length > 0 ? new Date(Math.max(...ends)).toISOString() : undefined
}

/** What the agent said when it last renewed: `… from <time> to <time>`, as agents in the field write it too. */
const saidExpiry = (object: Reporting): string | undefined =>
  / to (\d{4}-\d\d-\d\dT[\d:.]+Z|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC)/.exec(
    findCondition(object, CertificateRotated.type)?.message ?? '',
  )?.[1]

const addOnFacts = (addOn: ManagedClusterAddOn, requests: readonly CertificateSigningRequest[]) => {
  const name = addOn.metadata.name!
  const own = requests.filter(({ metadata }) => metadata.labels?.[label.addOnName] === name)
  return {
    name,
    available: stateOf(addOn, conditionType.addOn.available),
    namespace: addOn.status?.namespace ?? '',
    credentials: (addOn.status?.registrations ?? []).map(({ type, kubeClient, customSigner }) => ({
      driver: type === 'kubeClient' ? (kubeClient?.driver ?? 'csr') : 'csr',
      signer: customSigner?.signerName ?? '',
      subject: (kubeClient ?? customSigner)?.subject?.user ?? '',
      expires:
        kubeClient?.driver === 'token'
          ? (tokenExpiry(addOn) ?? '')
          : (expiryOf(own.filter(({ spec }) => !customSigner || spec.signerName === customSigner.signerName)) ??
            saidExpiry(addOn) ??
            ''),
    })),
    problem: problemIn(addOn, conditionType.addOn.available),
  }
}

const tokenExpiry = (addOn: ManagedClusterAddOn): string | undefined => {
  const { tokenRefreshed, tokenRefreshedElsewhere } = conditionType.addOn
  const said = findCondition(addOn, tokenRefreshed) ?? findCondition(addOn, tokenRefreshedElsewhere)
  return /(\d{4}-\d\d-\d\dT[\d:.]+Z)/.exec(said?.message ?? '')?.[1]
}
