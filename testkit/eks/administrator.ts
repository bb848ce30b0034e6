import { pathOf, type Credentials, type EksCluster } from '../../src/aws/index.ts'
import { ClusterRoleBinding } from '../../src/kube/index.ts'
import { allowing } from '../aws-account.ts'
import type { ControlPlane } from '../control-plane.ts'
import type { LocalEks } from './index.ts'

const group = 'cluster-creators'

/**
 * Somebody who may do everything in the account of a cluster, and who has made the cluster: EKS gives such a person an access
 * entry, and everything on the cluster by a policy of its own. Outside of EKS nobody knows these policies: here it is a group.
 */
export const administratorOf = async (
  eks: LocalEks,
  cluster: EksCluster,
  plane: ControlPlane,
): Promise<Credentials> => {
  const account = eks.account(cluster.account)
  const name = `admin-of-${cluster.name}`
  const keys = await account.user(name, allowing({ Action: '*', Resource: '*' }))
  await eks.client.json({
    service: 'eks',
    operation: 'CreateAccessEntry',
    method: 'POST',
    path: pathOf('clusters', cluster.name, 'access-entries'),
    region: cluster.region,
    credentials: account.root,
    body: { principalArn: `arn:aws:iam::${cluster.account}:user/${name}`, kubernetesGroups: [group] },
  })
  await plane
    .client()
    .of(ClusterRoleBinding)
    .create({
      metadata: { name: group },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group }],
    })
  return keys
}
