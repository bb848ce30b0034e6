import { label, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding } from '../../api/index.ts'
import { clusterSet } from '../../registration/contract.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { CliError } from '../errors.ts'
import { sayDryRun } from '../names.ts'

export default defineCommand({
  text: 'Deletes a cluster set that has no clusters and that no namespace uses.',
  flags: {},
  args: [{ name: 'NAME', about: 'the name of the set', completes: 'clustersets' }],
  run: async (cli) => {
    const [name = ''] = cli.args
    sayDryRun(cli)
    if (name === clusterSet.default || name === clusterSet.global)
      throw new CliError(`cluster set ${name} belongs to every hub and cannot be deleted`)
    await withHub(cli, async ({ client }) => {
      const { signal } = cli
      const [bindings, clusters] = await Promise.all([
        client.of(ManagedClusterSetBinding).list({ signal }),
        client.of(ManagedCluster).list({ labelSelector: `${label.clusterSet}=${name}`, metadataOnly: true, signal }),
      ])
      const bound = bindings.items.filter(({ spec }) => spec.clusterSet === name)
      if (bound.length > 0)
        throw new CliError(
          `cluster set ${name} is used by the namespaces ${bound.map(({ metadata }) => metadata.namespace).join(', ')}`,
          {
            next: `unbind it first: ${cli.program} clusterset unbind ${name} --namespace ${bound[0]!.metadata.namespace}`,
          },
        )
      if (clusters.items.length > 0)
        throw new CliError(
          `cluster set ${name} has ${clusters.items.length} clusters, ${clusters.items[0]!.metadata.name} among them`,
          { next: `put them elsewhere first: ${cli.program} clusterset set default --clusters …` },
        )
      const existed = await client.of(ManagedClusterSet).delete(name, { dryRun: cli.flags['dry-run'], signal })
      cli.out.line(`cluster set ${name}: ${existed ? 'deleted' : 'there is none'}`)
    })
  },
})
