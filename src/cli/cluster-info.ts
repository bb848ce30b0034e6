import { kubeconfigText, type KubeObject } from '../kube/index.ts'
import type { Cluster } from './cluster.ts'
import { clusterInfo } from './hub-trust.ts'

const labels = { 'app.kubernetes.io/name': 'lanyard', 'app.kubernetes.io/component': 'cluster-info' }
const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1' }
const place = { namespace: 'kube-public', labels }
const roleName = 'open-cluster-management:cluster-info'

/**
 * Where the hub is and what its CA is, for clusters that want to join: public by nature, and readable without a token as
 * kubeadm has it, so that nobody has to send one before the hub is verified. One that is there already stays.
 */
export const clusterInfoObjects = async (
  { client, connection }: Cluster,
  signal: AbortSignal,
): Promise<KubeObject[]> => {
  const { ca } = await connection.credentials({ signal })
  if (!ca) return [] // from a well-known authority: nothing has to be published
  const info = await clusterInfo(client, signal).catch(() => undefined)
  const text = await kubeconfigText({ cluster: '', server: connection.server, ca, user: { token: '' } })
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'cluster-info', ...place } }
  return [...(info?.ca ? [] : [{ ...map, data: { kubeconfig: onlyCluster(text) } } as KubeObject]), ...readers]
}

// Users and contexts have no place in what everybody may read.
const onlyCluster = (text: string): string => `${text.slice(0, text.indexOf('users:'))}users: []\ncontexts: []\n`

const readers: KubeObject[] = [
  {
    ...rbac,
    kind: 'Role',
    metadata: { name: roleName, ...place },
    rules: [{ apiGroups: [''], resources: ['configmaps'], resourceNames: ['cluster-info'], verbs: ['get'] }],
  } as KubeObject,
  {
    ...rbac,
    kind: 'RoleBinding',
    metadata: { name: roleName, ...place },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: roleName },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:unauthenticated' }],
  } as KubeObject,
]

/** What `clean` takes away of it: what carries our labels. */
export const clusterInfoRemoval = { namespace: 'kube-public', labels, names: { roleName, map: 'cluster-info' } }
