import { ClusterManager, finalizer, label, ManagedCluster } from '../../api/index.ts'
import {
  CertificateSigningRequest,
  ConfigMap,
  isNotFound,
  Secret,
  type Client,
  type KubeObject,
} from '../../kube/index.ts'
import { defaultName, namespace, operatorName } from '../../operator/contract.ts'
import { hubRemoval } from '../../operator/index.ts'
import { removeAll } from '../apply.ts'
import { clusterInfoRemoval } from '../cluster-info.ts'
import { requireHub, roleOf, withCluster, type Cluster } from '../cluster.ts'
import { defineCommand, type Cli } from '../command.ts'
import { Deployment } from '../deployment.ts'
import { CliError } from '../errors.ts'
import { sayDryRun } from '../names.ts'
import { untilObjectsGone } from '../removal.ts'
import { bootstrapGroupBinding, bootstrapTokenLabels } from '../token.ts'
import { untilGone, untilObject } from '../wait.ts'

const flags = {
  name: { help: 'The ClusterManager', default: defaultName.clusterManager as string, value: 'NAME' },
  'purge-operator': { help: 'Also remove the operator and what new clusters join with', default: true },
  force: { help: 'Also with clusters that are let in: they lose their hub', default: false },
} as const
type Clean = Cli<typeof flags>

export default defineCommand({
  text: 'Removes everything that init installed. Clusters that are let in have to unjoin first; ManagedClusters of others are deleted.',
  flags,
  run: async (cli) => {
    sayDryRun(cli)
    await withCluster(cli, async (cluster) => {
      const { client } = cluster
      const clusters = await listed(client.of(ManagedCluster).list({ signal: cli.signal }))
      const letIn = clusters.filter(({ spec }) => spec.hubAcceptsClient)
      if (letIn.length > 0 && !cli.flags.force)
        throw new CliError(`this hub still manages ${letIn.length} clusters: ${names(letIn)}`, {
          next: `unjoin them first, on each of them: ${cli.program} unjoin --cluster-name ${letIn[0]!.metadata.name}; or give --force, and they lose their hub`,
        })
      if (cli.flags['dry-run'])
        return cli.out.line(`The hub would be removed, with the ManagedClusters ${names(clusters) || '(none)'}.`)
      const had = await removeHub(cli, client, clusters)
      const purged = await purge(cli, cluster)
      if (!had && !purged && (await roleOf(cluster, cli.signal)).managed) await requireHub(cli, cluster)
      cli.out.line(had || purged ? 'The hub is removed.' : 'There is no hub here: nothing to do.')
    })
  },
})

const names = (objects: readonly KubeObject[]): string =>
  objects
    .slice(0, 10)
    .map(({ metadata }) => metadata.name)
    .join(', ')

const listed = <T>(list: Promise<{ items: T[] }>): Promise<T[]> =>
  list
    .then(({ items }) => items)
    .catch((error: unknown) => {
      if (isNotFound(error)) return []
      throw error
    })

/** First the clusters, while the hub still cleans up after them; then the hub itself. */
const removeHub = async (cli: Clean, client: Client, clusters: readonly ManagedCluster[]): Promise<boolean> => {
  const timeoutMs = cli.flags.timeout * 1000
  const hubHelp = `is the hub running? kubectl -n ${namespace.hub} get deployments; run the same command again to go on`
  for (const { metadata } of clusters) {
    const name = metadata.name!
    await client.of(ManagedCluster).delete(name, { signal: cli.signal })
    await cli.progress.step(
      `waiting for the hub to clean up after cluster ${name}`,
      (step) => untilGone(client.of(ManagedCluster), name, { step, clock: cli.clock }),
      { timeoutMs, next: hubHelp },
    )
  }
  const managers = client.of(ClusterManager)
  const { name } = cli.flags
  const present = await managers.find(name, { signal: cli.signal })
  if (!present) return clusters.length > 0
  await managers.delete(name, { signal: cli.signal })
  const operator = await client.of(Deployment, namespace.operator).find(operatorName.hub, { signal: cli.signal })
  if (!operator) {
    cli.progress.warn('the operator is gone already: the ClusterManager is removed without it')
    const finalizers = present.metadata.finalizers?.filter((one) => one !== finalizer.clusterManager)
    if (await managers.find(name, { signal: cli.signal }))
      await managers.patch(name, { merge: { metadata: { finalizers } } }, { signal: cli.signal })
  }
  await cli.progress.step(
    `waiting for the operator to remove the hub`,
    (step) =>
      untilObject(managers, name, { step, clock: cli.clock }, (left) => {
        if (!left) return { done: undefined }
        return {
          seen: left.status?.conditions?.find(({ type }) => type === 'Applied')?.message ?? 'it has said nothing yet',
        }
      }),
    {
      timeoutMs,
      next: `is the operator running? kubectl -n ${namespace.operator} get deployment ${operatorName.hub}; run the same command again to go on`,
    },
  )
  return true
}

/** The operator and its rights, and what init has put elsewhere. */
const purge = async (cli: Clean, cluster: Cluster): Promise<boolean> => {
  if (!cli.flags['purge-operator']) return false
  const { client } = cluster
  const { managed } = await roleOf(cluster, cli.signal)
  const objects: KubeObject[] = [
    ...hubRemoval({ managedRemains: managed }),
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: bootstrapGroupBinding },
    },
    ...(await ownTokens(cli, client)),
    ...(await publicInfo(cli, client)),
    ...(await requests(cli, client)),
  ]
  const removed = await removeAll(client, objects, { dryRun: false, signal: cli.signal })
  await untilObjectsGone(cli, client, removed, 'the operator')
  return removed.length > 0
}

const ownTokens = async (cli: Clean, client: Client): Promise<KubeObject[]> => {
  const labelSelector = Object.entries(bootstrapTokenLabels)
    .map(([key, value]) => `${key}=${value}`)
    .join()
  const fieldSelector = 'type=bootstrap.kubernetes.io/token'
  const { items } = await client.of(Secret, 'kube-system').list({ labelSelector, fieldSelector, signal: cli.signal })
  return items.map(({ metadata: { name = '' } }) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'kube-system' },
  }))
}

/** Certificate requests of clusters; Kubernetes itself would keep those that were issued for an hour. */
const requests = async (cli: Clean, client: Client): Promise<KubeObject[]> => {
  const { items } = await client
    .of(CertificateSigningRequest)
    .list({ labelSelector: label.clusterName, metadataOnly: true, signal: cli.signal })
  return items.map(({ metadata: { name = '' } }) => ({
    apiVersion: 'certificates.k8s.io/v1',
    kind: CertificateSigningRequest.kind,
    metadata: { name },
  }))
}

/** What kubeadm has published stays; what we have goes. */
const publicInfo = async (cli: Clean, client: Client): Promise<KubeObject[]> => {
  const { namespace, labels, names } = clusterInfoRemoval
  const map = await client.of(ConfigMap, namespace).find(names.map, { signal: cli.signal })
  const ours = Object.entries(labels).every(([key, value]) => map?.metadata.labels?.[key] === value)
  const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: names.roleName, namespace } }
  return [
    ...(ours ? [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: names.map, namespace } }] : []),
    { ...rbac, kind: 'RoleBinding' },
    { ...rbac, kind: 'Role' },
  ]
}
