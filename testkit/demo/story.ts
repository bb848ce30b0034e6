import { execFileSync } from 'node:child_process'
import { label, ManagedCluster, ManifestWork } from '../../src/api/index.ts'
import {
  CertificateSigningRequest,
  ClusterRole,
  clientFor,
  connectionFrom,
  loadKubeconfig,
  type Client,
} from '../../src/kube/index.ts'
import { isTrue } from '../../src/runtime/index.ts'
import { eventually } from '../eventually.ts'
import { controlPlaneBinary } from '../paths.ts'
import { cluster, type Place } from './place.ts'

const role = 'pod-reader'
const work: ManifestWork = {
  metadata: { name: 'rbac', namespace: cluster },
  spec: {
    workload: {
      manifests: [
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'ClusterRole',
          metadata: { name: role },
          rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] }],
        },
      ],
    },
  },
}

/** Shows the main job: a cluster joins, is accepted, gets work, and what it got is protected. It can be told again. */
export const tell = async (place: Place): Promise<void> => {
  const [hub, managed] = await Promise.all([place.hub, place.managed].map(clientOf))
  try {
    await join(hub!, shown(place.hub, 'hub'))
    await deliver(hub!, managed!, shown(place.managed, 'managed'))
  } finally {
    hub!.close()
    managed!.close()
  }
}

type Kubectl = (...args: string[]) => void

const join = async (hub: Client, kubectl: Kubectl): Promise<void> => {
  console.log(`\nThe agent of "${cluster}" has asked to join. Nobody has let it in yet:`)
  const clusters = hub.of(ManagedCluster)
  await eventually(() => clusters.get(cluster))
  kubectl('get', 'managedclusters')

  console.log(
    '\nAn administrator of the hub accepts it and approves its certificate request; the hub makes its access:',
  )
  const requests = await eventually(async () => {
    const { items } = await hub.of(CertificateSigningRequest).list({ labelSelector: `${label.clusterName}=${cluster}` })
    return items.length > 0 && items
  })
  for (const { metadata, status } of requests)
    if (!status?.conditions?.length) kubectl('certificate', 'approve', metadata.name!)
  kubectl('patch', 'managedcluster', cluster, '--type=merge', '-p', '{"spec":{"hubAcceptsClient":true}}')
  await eventually(async () => {
    const seen = await clusters.get(cluster)
    if (!isTrue(seen, 'ManagedClusterJoined') || !isTrue(seen, 'ManagedClusterConditionAvailable'))
      throw new Error(`${cluster} has not joined yet`)
  })
  kubectl('get', 'managedclusters')
  kubectl('get', 'rolebindings', '-n', cluster)
}

const deliver = async (hub: Client, managed: Client, kubectl: Kubectl): Promise<void> => {
  console.log('\nA ManifestWork in its namespace on the hub brings a ClusterRole to the managed cluster:')
  const works = hub.of(ManifestWork, cluster)
  await works.apply(work, { fieldManager: 'demo', force: true })
  await eventually(async () => {
    if (!isTrue(await works.get('rbac'), 'Applied')) throw new Error('the work is not applied yet')
  })
  kubectl('get', 'clusterrole', role, '-o', 'jsonpath={.rules[0].verbs}{"\\n"}')

  console.log('\nSomebody there gives it more rights; the agent sees it and takes them back:')
  const before = await managed.of(ClusterRole).get(role)
  kubectl(
    'patch',
    'clusterrole',
    role,
    '--type=json',
    '-p',
    '[{"op":"add","path":"/rules/0/verbs/-","value":"delete"}]',
  )
  await eventually(async () => {
    const { rules, metadata } = await managed.of(ClusterRole).get(role)
    if (metadata.resourceVersion === before.metadata.resourceVersion || rules?.[0]?.verbs.includes('delete'))
      throw new Error('the role is not repaired yet')
  })
  kubectl('get', 'clusterrole', role, '-o', 'jsonpath={.rules[0].verbs}{"\\n"}')
}

const clientOf = async (path: string): Promise<Client> =>
  clientFor(connectionFrom(await loadKubeconfig({ path, env: {} })), { userAgent: 'lanyard-demo' })

/** Runs kubectl, and shows both what was typed and what it answered. */
const shown =
  (kubeconfig: string, context: string): Kubectl =>
  (...args) => {
    const quoted = args.map((word) => (/[{}[\]"]/.test(word) ? `'${word}'` : word))
    console.log(`\n$ kubectl ${quoted.join(' ')}   # ${context}`)
    const options = { encoding: 'utf8' as const, env: { KUBECONFIG: kubeconfig, HOME: '/nonexistent' } }
    process.stdout.write(execFileSync(controlPlaneBinary('kubectl'), args, options))
  }
