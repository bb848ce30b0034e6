import { conditionType, label, ManagedCluster } from '../../api/index.ts'
import { findCondition } from '../../runtime/index.ts'
import { withHub } from '../cluster.ts'
import { defineCommand, outputFlag } from '../command.ts'
import { ageOf } from '../age.ts'
import { missing } from '../names.ts'

/** What is told of a cluster. */
const factsOf = (cluster: ManagedCluster) => {
  const { metadata, spec, status } = cluster
  const state = (type: string): string => findCondition(cluster, type)?.status ?? 'Unknown'
  return {
    name: metadata.name!,
    accepted: spec.hubAcceptsClient ?? false,
    joined: state(conditionType.managedCluster.joined) === 'True',
    available: state(conditionType.managedCluster.available),
    clusterSet: metadata.labels?.[label.clusterSet] ?? '',
    cpu: String(status?.capacity?.['cpu'] ?? ''),
    memory: String(status?.capacity?.['memory'] ?? ''),
    kubernetesVersion: status?.version?.kubernetes ?? '',
    created: metadata.creationTimestamp ?? '',
  }
}

export default defineCommand({
  text: 'Lists the clusters that have joined this hub or ask to.',
  flags: {
    clusterset: { help: 'Only those of this set', default: '', value: 'NAME', completes: 'clustersets' },
    ...outputFlag,
  },
  args: [{ name: 'NAME', about: 'Only these', optional: true, many: true, completes: 'clusters' }],
  examples: ['get clusters', 'get clusters -o json', 'get clusters --clusterset prod'],
  run: (cli) =>
    withHub(cli, async ({ client }) => {
      const { clusterset, output } = cli.flags
      const labelSelector = clusterset ? `${label.clusterSet}=${clusterset}` : undefined
      const { items } = await client.of(ManagedCluster).list({ labelSelector, signal: cli.signal })
      const all = items.map(factsOf).toSorted((a, b) => a.name.localeCompare(b.name))
      const known = all.map(({ name }) => name)
      for (const name of cli.args) if (!known.includes(name)) throw await missing('cluster', name, known)
      const chosen = cli.args.length > 0 ? all.filter(({ name }) => cli.args.includes(name)) : all
      await cli.out.data(output, chosen, () => ({
        columns: ['Name', 'Accepted', 'Joined', 'Available', 'ClusterSet', 'CPU', 'Memory', 'Kubernetes', 'Age'],
        rows: chosen.map((one) => [
          one.name,
          String(one.accepted),
          String(one.joined),
          one.available,
          one.clusterSet,
          one.cpu,
          one.memory,
          one.kubernetesVersion,
          ageOf(one.created, cli.clock.now()),
        ]),
        none: clusterset ? `No clusters in set ${clusterset}.` : 'No clusters have asked to join this hub yet.',
      }))
    }),
})
