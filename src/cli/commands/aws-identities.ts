import { credentialsFor, hubNamespaceFlag, readDirectory } from '../aws/directory.ts'
import { identitiesPicture, identityFacts, treeText, triedOut } from '../aws/identity-tree.ts'
import { regionFlag, regionOf, withAws } from '../aws/session.ts'
import { withCluster } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { drawn, pictureFlag } from '../picture.ts'

export default defineCommand({
  text: 'Shows the AWS identities as the tree of their chains: what each stands on, which account it acts in, who may use it, which clusters do, and what the hub has said last about those. With --check each is tried out now, with your own AWS credentials where a chain begins with those of the hub.',
  flags: {
    check: { help: 'Ask AWS for each of them: who it is, until when, or why not', default: false },
    ...regionFlag,
    ...hubNamespaceFlag,
    ...pictureFlag,
  },
  examples: ['aws identities', 'aws identities --check', 'aws identities -o dot | dot -Tsvg > identities.svg'],
  run: (cli) =>
    withCluster(cli, async ({ client }) => {
      const { output } = cli.flags
      const region = regionOf(cli)
      const directory = await readDirectory(cli, client, region)
      const read = directory.identities.map((known) => identityFacts(directory, known))
      const facts = cli.flags.check
        ? await withAws(cli, async (session) => {
            const cache = credentialsFor(client, session)
            try {
              return await triedOut(directory, read, cache, { region, signal: cli.signal })
            } finally {
              cache.close()
            }
          })
        : read
      const picture = drawn(output, () => identitiesPicture(facts))
      await cli.out.data(output, facts, () => picture ?? treeText(facts))
    }),
})
