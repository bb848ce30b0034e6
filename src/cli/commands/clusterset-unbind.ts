import { ManagedClusterSetBinding } from '../../api/index.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { checkedName, sayDryRun } from '../names.ts'
import { namespaceFlag } from '../namespace-flag.ts'

export default defineCommand({
  text: 'No longer lets a namespace of the hub use the clusters of a set.',
  flags: namespaceFlag,
  args: [{ name: 'NAME', about: 'the name of the set', completes: 'clustersets' }],
  run: async (cli) => {
    const [name = ''] = cli.args
    const namespace = checkedName('--namespace', cli.flags.namespace)
    sayDryRun(cli)
    await withHub(cli, async ({ client }) => {
      const existed = await client
        .of(ManagedClusterSetBinding, namespace)
        .delete(name, { dryRun: cli.flags['dry-run'], signal: cli.signal })
      cli.out.line(`namespace ${namespace}: ${existed ? 'may no longer use' : 'did not use'} cluster set ${name}`)
    })
  },
})
