import { label, ManagedCluster, ManagedClusterSet } from '../../api/index.ts'
import { UsageError } from '../../main/flags.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { checkedName, clustersFlags, clustersOf, missing, sayDryRun } from '../names.ts'

export default defineCommand({
  text: 'Puts clusters into a set, out of the one they are in; or says which namespaces its clusters get.',
  flags: {
    ...clustersFlags,
    namespaces: { help: 'Managed namespaces: every cluster of the set gets them', default: [], value: 'NAMES' },
  },
  args: [{ name: 'NAME', about: 'the name of the set', completes: 'clustersets' }],
  examples: ['clusterset set prod --clusters c1,c2', 'clusterset set prod --namespaces team-a'],
  run: async (cli) => {
    const [name = ''] = cli.args
    const clusters = clustersOf(cli.flags)
    const namespaces = cli.flags.namespaces.map((one) => checkedName('--namespaces', one))
    if (clusters.length === 0 && namespaces.length === 0)
      throw new UsageError('--clusters or --namespaces is missing: say what the set gets')
    sayDryRun(cli)
    await withHub(cli, async ({ client }) => {
      const write = { dryRun: cli.flags['dry-run'], signal: cli.signal }
      const [sets, all] = await Promise.all([
        client.of(ManagedClusterSet).list({ signal: cli.signal }),
        client.of(ManagedCluster).list({ metadataOnly: true, signal: cli.signal }),
      ])
      const set = sets.items.find(({ metadata }) => metadata.name === name)
      const names = (of: { metadata: { name?: string | undefined } }[]) => of.map(({ metadata }) => metadata.name!)
      if (!set)
        throw await missing(
          'cluster set',
          name,
          names(sets.items),
          `create it: ${cli.program} create clusterset ${name}`,
        )
      for (const cluster of clusters)
        if (!names(all.items).includes(cluster)) throw await missing('cluster', cluster, names(all.items))
      for (const cluster of clusters) {
        const was = all.items.find(({ metadata }) => metadata.name === cluster)!.metadata.labels?.[label.clusterSet]
        if (was !== name)
          await client
            .of(ManagedCluster)
            .patch(cluster, { merge: { metadata: { labels: { [label.clusterSet]: name } } } }, write)
        cli.out.line(
          `cluster ${cluster}: ${was === name ? `is in ${name} already` : `moved from ${was || 'no set'} to ${name}`}`,
        )
      }
      if (namespaces.length === 0) return
      const present = (set.spec?.managedNamespaces ?? []).map((one) => one.name)
      const wanted = [...new Set([...present, ...namespaces])]
      if (wanted.length > present.length)
        await client
          .of(ManagedClusterSet)
          .patch(name, { merge: { spec: { managedNamespaces: wanted.map((one) => ({ name: one })) } } }, write)
      cli.out.line(`cluster set ${name}: managed namespaces ${wanted.join(', ')}`)
    })
  },
})
