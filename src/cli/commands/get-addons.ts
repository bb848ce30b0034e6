import { ClusterManagementAddOn, ManagedClusterAddOn } from '../../api/index.ts'
import { addOnFacts, expiryText } from '../add-on-facts.ts'
import { withHub } from '../cluster.ts'
import { defineCommand, outputFlag } from '../command.ts'
import { clustersFlags, clustersOf, missing } from '../names.ts'

export default defineCommand({
  text: 'Lists the add-ons that this hub knows and the clusters where each is enabled: whether it is there, how it proves who it is to the hub, as whom, and until when.',
  flags: { ...clustersFlags, ...outputFlag },
  args: [{ name: 'NAME', about: 'Only these add-ons', optional: true, many: true, completes: 'addons' }],
  examples: ['get addons', 'get addons --clusters c1', 'get addons managed-serviceaccount -o json'],
  run: (cli) =>
    withHub(cli, async ({ client }) => {
      const { signal } = cli
      const chosen = clustersOf(cli.flags)
      const [known, enabled] = await Promise.all([
        client.of(ClusterManagementAddOn).list({ signal }),
        client.of(ManagedClusterAddOn).list({ signal }),
      ])
      const names = [...new Set([...known.items, ...enabled.items].map(({ metadata }) => metadata.name!))].toSorted()
      for (const name of cli.args) if (!names.includes(name)) throw await missing('add-on', name, names)
      const addOns = names
        .filter((name) => cli.args.length === 0 || cli.args.includes(name))
        .map((name) => ({
          name,
          clusters: enabled.items
            .filter(({ metadata }) => metadata.name === name)
            .filter(({ metadata }) => chosen.length === 0 || chosen.includes(metadata.namespace!))
            .map(addOnFacts)
            .toSorted((a, b) => a.name.localeCompare(b.name)),
        }))
        // Who asks about some clusters does not ask what else there is.
        .filter(({ clusters }) => chosen.length === 0 || clusters.length > 0)
      const now = cli.clock.now()
      await cli.out.data(cli.flags.output, addOns, () => ({
        columns: ['Name', 'Cluster', 'Available', 'Driver', 'Subject', 'Expires', 'Problem'],
        rows: addOns.flatMap(({ name, clusters }) =>
          clusters.length === 0
            ? [[name, '(nowhere)']]
            : clusters.map((one) => [
                name,
                one.name,
                one.available,
                one.driver,
                one.subject,
                expiryText(one.expires, now),
                one.problem,
              ]),
        ),
        none: 'No add-ons.',
      }))
    }),
})
