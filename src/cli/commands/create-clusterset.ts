import { ManagedClusterSet } from '../../api/index.ts'
import { isAlreadyExists } from '../../kube/index.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { checkedName, sayDryRun } from '../names.ts'

export default defineCommand({
  text: 'Creates an empty cluster set. clusterset set puts clusters into it.',
  flags: {},
  args: [{ name: 'NAME', about: 'the name of the set' }],
  run: async (cli) => {
    const name = checkedName('the name', cli.args[0]!)
    sayDryRun(cli)
    await withHub(cli, async ({ client }) => {
      const created = await client
        .of(ManagedClusterSet)
        .create({ metadata: { name }, spec: {} }, { dryRun: cli.flags['dry-run'], signal: cli.signal })
        .catch((error: unknown) => {
          if (!isAlreadyExists(error)) throw error
          return undefined
        })
      cli.out.line(`cluster set ${name}: ${created ? 'created' : 'exists already'}`)
    })
  },
})
