import { missing } from '../names.ts'
import { withHub } from '../cluster.ts'
import { defineCommand, outputFlag } from '../command.ts'
import { factsAbout } from '../describe/facts.ts'
import { pageOf } from '../describe/page.ts'
import { ManagedCluster } from '../../api/index.ts'

export default defineCommand({
  text: 'Shows a cluster of this hub on one page: who it is and how it proves that, its credentials and when they end, its conditions, add-ons, works, permissions and service accounts.',
  flags: outputFlag,
  args: [{ name: 'NAME', about: 'The cluster', completes: 'clusters' }],
  examples: ['describe cluster c1', 'describe cluster c1 -o yaml'],
  run: (cli) =>
    withHub(cli, async ({ client }) => {
      const [name = ''] = cli.args
      const { signal } = cli
      const cluster = await client.of(ManagedCluster).find(name, { signal })
      if (!cluster) {
        const { items } = await client.of(ManagedCluster).list({ metadataOnly: true, signal })
        throw await missing(
          'cluster',
          name,
          items.map(({ metadata }) => metadata.name!),
        )
      }
      const facts = await factsAbout(client, cluster, signal)
      await cli.out.data(cli.flags.output, facts, () => pageOf(facts, cli.clock.now()))
    }),
})
