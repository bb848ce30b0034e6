import { Secret, type KubeObject } from '../../kube/index.ts'
import { bootstrapAccount, bootstrapRole, namespace } from '../../operator/contract.ts'
import { removeAll } from '../apply.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { sayDryRun } from '../names.ts'
import { bootstrapGroupBinding, bootstrapTokenLabels } from '../token.ts'

const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1' }

/** The account goes first: with it, all of its tokens end at once. */
export const bootstrapObjects: KubeObject[] = [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: bootstrapAccount, namespace: namespace.operator } },
  { ...rbac, kind: 'ClusterRoleBinding', metadata: { name: `${bootstrapRole}:agent-registration` } },
  { ...rbac, kind: 'ClusterRoleBinding', metadata: { name: bootstrapGroupBinding } },
  { ...rbac, kind: 'ClusterRole', metadata: { name: bootstrapRole } },
]

export default defineCommand({
  text: 'Ends all tokens with which clusters can ask to join, and takes the rights behind them away. init brings them back.',
  flags: {},
  run: (cli) =>
    withHub(cli, async ({ client }) => {
      sayDryRun(cli)
      const options = { dryRun: cli.flags['dry-run'], signal: cli.signal }
      const selector = Object.entries(bootstrapTokenLabels).map(([key, value]) => `${key}=${value}`)
      const secrets = await client.of(Secret, 'kube-system').list({
        labelSelector: selector.join(),
        fieldSelector: 'type=bootstrap.kubernetes.io/token',
        signal: cli.signal,
      })
      const tokens = secrets.items.map(({ metadata: { name = '' } }) => ({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name, namespace: 'kube-system' },
      }))
      const removed = await removeAll(client, [...bootstrapObjects, ...tokens], options)
      cli.out.line(removed.length > 0 ? 'All tokens for joining have ended.' : 'There are no tokens for joining.')
    }),
})
