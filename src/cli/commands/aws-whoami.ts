import { getCallerIdentity } from '../../aws/index.ts'
import { describeReference, describeRefusal } from '../../identities/index.ts'
import { UsageError } from '../../main/flags.ts'
import { timestamp } from '../../runtime/index.ts'
import {
  beginsWithOwn,
  clusterNamed,
  credentialsFor,
  hubNamespaceFlag,
  nameOf,
  readDirectory,
} from '../aws/directory.ts'
import { regionFlag, regionOf, withAws } from '../aws/session.ts'
import { withCluster } from '../cluster.ts'
import { defineCommand, outputFlag } from '../command.ts'
import { CliError } from '../errors.ts'

export default defineCommand({
  text: 'Says who AWS thinks acts for a cluster: it goes through the chain of its identity and asks. Without --cluster it says who you are.',
  flags: {
    cluster: { help: 'An AWSCluster', default: '', short: 'c', value: 'NAMESPACE/NAME' },
    ...regionFlag,
    ...hubNamespaceFlag,
    ...outputFlag,
  },
  examples: ['aws whoami', 'aws whoami --cluster team-a/prod'],
  run: async (cli) => {
    const { cluster: word, output } = cli.flags
    const print = (who: Record<string, string>): Promise<void> =>
      cli.out.data(output, who, () =>
        Object.entries(who)
          .map(([key, value]) => `${key.padEnd(10)}${value}`)
          .join('\n'),
      )
    if (!word)
      return withAws(cli, async ({ aws, own, region }) => {
        const { account, arn } = await getCallerIdentity(aws, await own(), region, cli.signal)
        await print({ account, arn })
      })
    if (!/^[^/]+\/[^/]+$/.test(word)) throw new UsageError('--cluster takes NAMESPACE/NAME, the name of an AWSCluster')
    return withCluster(cli, async ({ client }) => {
      const directory = await readDirectory(cli, client, regionOf(cli))
      const cluster = await clusterNamed(directory, word)
      const chain = directory.chainOf(cluster)
      if (!chain.recipe)
        throw new CliError(`AWSCluster ${nameOf(cluster)}: ${describeRefusal(chain.refusal!)}`, {
          next: `the whole chain: ${cli.program} aws explain ${word}`,
        })
      const { recipe } = chain
      if (beginsWithOwn(recipe))
        cli.progress.warn('the chain begins with the credentials of the hub; yours are used in their place')
      await withAws(cli, async (session) => {
        const cache = credentialsFor(client, session)
        try {
          const region = directory.regionOf(cluster)
          const { expiration } = await cache.get(recipe, cli.signal)
          const { account, arn } = await cache.caller(recipe, region, cli.signal)
          const pinned = cluster.spec?.accountID
          if (pinned && pinned !== account)
            cli.progress.warn(`the cluster lives in account ${pinned}: the hub does nothing for it with this identity`)
          await print({
            cluster: word,
            account,
            arn,
            region,
            expires: expiration ? timestamp(expiration) : 'never',
            identity: describeReference(chain.links[0]!.reference),
            chain: chain.path,
          })
        } finally {
          cache.close()
        }
      })
    })
  },
})
