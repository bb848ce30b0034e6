import { ManagedClusterSet, ManagedClusterSetBinding } from '../../api/index.ts'
import { isAlreadyExists } from '../../kube/index.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { checkedName, missing, sayDryRun } from '../names.ts'
import { namespaceFlag } from '../namespace-flag.ts'

export default defineCommand({
  text: 'Lets a namespace of the hub use the clusters of a set.',
  flags: namespaceFlag,
  args: [{ name: 'NAME', about: 'the name of the set', completes: 'clustersets' }],
  run: async (cli) => {
    const [name = ''] = cli.args
    const namespace = checkedName('--namespace', cli.flags.namespace)
    sayDryRun(cli)
    await withHub(cli, async ({ client }) => {
      const { signal } = cli
      const sets = (await client.of(ManagedClusterSet).list({ signal })).items.map(({ metadata }) => metadata.name!)
      if (!sets.includes(name))
        throw await missing('cluster set', name, sets, `create it: ${cli.program} create clusterset ${name}`)
      const bound = await client
        .of(ManagedClusterSetBinding, namespace)
        .create({ metadata: { name, namespace }, spec: { clusterSet: name } }, { dryRun: cli.flags['dry-run'], signal })
        .catch((error: unknown) => {
          if (!isAlreadyExists(error)) throw error
          return undefined
        })
      cli.out.line(`namespace ${namespace}: ${bound ? 'may use' : 'may use already'} cluster set ${name}`)
    })
  },
})
