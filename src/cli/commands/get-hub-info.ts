import { ClusterManager, ManagedCluster } from '../../api/index.ts'
import { namespace } from '../../operator/contract.ts'
import { withHub } from '../cluster.ts'
import { defineCommand, outputFlag } from '../command.ts'
import { conditionLines, kindsIn, optional, partLines, partsIn } from '../installation.ts'

export default defineCommand({
  text: 'Shows what is installed on this hub, in which version, and how it is.',
  flags: outputFlag,
  run: (cli) =>
    withHub(cli, async ({ client, connection }) => {
      const { signal } = cli
      const [managers, parts, kinds, clusters] = await Promise.all([
        optional(client.of(ClusterManager).list({ signal })),
        partsIn(client, [namespace.operator, namespace.hub], signal),
        kindsIn(client, signal),
        optional(client.of(ManagedCluster).list({ signal })),
      ])
      const [manager] = managers?.items ?? []
      const drivers = manager?.spec?.registrationConfiguration?.registrationDrivers?.map(
        ({ authType }) => authType,
      ) ?? ['csr']
      const info = {
        server: connection.server,
        clusterManager: manager?.metadata.name ?? '',
        registration: drivers,
        clusters: {
          all: clusters?.items.length ?? 0,
          accepted: clusters?.items.filter(({ spec }) => spec.hubAcceptsClient).length ?? 0,
        },
        deployments: parts,
        conditions: manager?.status?.conditions ?? [],
        kinds,
      }
      await cli.out.data(cli.flags.output, info, () =>
        [
          `Hub ${info.server}`,
          `ClusterManager: ${info.clusterManager || 'none'}`,
          `Registration: ${drivers.join(', ')}`,
          `Clusters: ${info.clusters.all}, of which ${info.clusters.accepted} are let in`,
          'Conditions:',
          ...conditionLines(info.conditions),
          'Deployments:',
          ...partLines(parts),
          'Kinds (* is stored):',
          ...Object.entries(kinds).map(([name, versions]) => `  ${name}: ${versions}`),
        ].join('\n'),
      )
    }),
})
