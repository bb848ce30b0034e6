import {
  conditionType,
  isMember,
  ManagedCluster,
  ManagedClusterSet,
  ManagedClusterSetBinding,
} from '../../api/index.ts'
import { findCondition } from '../../runtime/index.ts'
import { withHub } from '../cluster.ts'
import { defineCommand, outputFlag } from '../command.ts'
import { missing } from '../names.ts'

export default defineCommand({
  text: 'Lists the cluster sets with their clusters, the namespaces that may use them and the namespaces they bring.',
  flags: outputFlag,
  args: [{ name: 'NAME', about: 'Only these sets', optional: true, many: true, completes: 'clustersets' }],
  run: (cli) =>
    withHub(cli, async ({ client }) => {
      const { signal } = cli
      const [sets, bindings, clusters] = await Promise.all([
        client.of(ManagedClusterSet).list({ signal }),
        client.of(ManagedClusterSetBinding).list({ signal }),
        client.of(ManagedCluster).list({ signal, metadataOnly: true }),
      ])
      const names = sets.items.map(({ metadata }) => metadata.name!)
      for (const name of cli.args) if (!names.includes(name)) throw await missing('cluster set', name, names)
      const facts = sets.items
        .filter(({ metadata }) => cli.args.length === 0 || cli.args.includes(metadata.name!))
        .map((set) => ({
          name: set.metadata.name!,
          clusters: clusters.items.filter((one) => isMember(set, one)).map(({ metadata }) => metadata.name!),
          boundNamespaces: bindings.items
            .filter(({ spec }) => spec.clusterSet === set.metadata.name)
            .map(({ metadata }) => metadata.namespace!),
          managedNamespaces: (set.spec?.managedNamespaces ?? []).map(({ name }) => name),
          status: findCondition(set, conditionType.managedClusterSet.empty)?.message ?? '',
        }))
        .toSorted((a, b) => a.name.localeCompare(b.name))
      await cli.out.data(cli.flags.output, facts, () => ({
        columns: ['Name', 'Clusters', 'Bound namespaces', 'Managed namespaces', 'Status'],
        rows: facts.map((one) => [
          one.name,
          String(one.clusters.length),
          one.boundNamespaces.join(','),
          one.managedNamespaces.join(','),
          one.status,
        ]),
        none: 'No cluster sets.',
      }))
    }),
})
