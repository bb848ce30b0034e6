import { Klusterlet } from '../../api/index.ts'
import { Secret } from '../../kube/index.ts'
import { namespace } from '../../operator/contract.ts'
import { secretName } from '../../registration/contract.ts'
import { withManaged } from '../cluster.ts'
import { defineCommand, outputFlag } from '../command.ts'
import { conditionLines, kindsIn, optional, partLines, partsIn } from '../installation.ts'
import { agentNamespace } from '../leaving.ts'

export default defineCommand({
  text: 'Shows the agents of this cluster: which hub they belong to, in which version they run, and how they are.',
  flags: outputFlag,
  run: (cli) =>
    withManaged(cli, async ({ client, connection }) => {
      const { signal } = cli
      const klusterlets = (await optional(client.of(Klusterlet).list({ signal })))?.items ?? []
      const places = klusterlets.map(agentNamespace)
      const [parts, kinds] = await Promise.all([
        partsIn(client, [namespace.operator, namespace.agent, ...places], signal),
        kindsIn(client, signal),
      ])
      const agents = await Promise.all(
        klusterlets.map(async (klusterlet) => {
          const place = agentNamespace(klusterlet)
          const has = async (name: string): Promise<boolean> =>
            Boolean(await client.of(Secret, place).find(name, { signal }))
          return {
            klusterlet: klusterlet.metadata.name!,
            clusterName: klusterlet.spec?.clusterName ?? '',
            mode: klusterlet.spec?.deployOption?.mode ?? 'Default',
            namespace: place,
            registration: klusterlet.spec?.registrationConfiguration?.registrationDriver?.authType ?? 'csr',
            bootstrapSecret: await has(secretName.bootstrap),
            hubCredential: await has(secretName.hub),
            conditions: klusterlet.status?.conditions ?? [],
          }
        }),
      )
      await cli.out.data(cli.flags.output, { server: connection.server, agents, deployments: parts, kinds }, () =>
        [
          `Managed cluster ${connection.server}`,
          ...agents.flatMap((agent) => [
            `Klusterlet ${agent.klusterlet}: cluster ${agent.clusterName}, ${agent.mode}, ${agent.registration}`,
            `  bootstrap secret: ${agent.bootstrapSecret ? 'there' : 'missing'}; credential for the hub: ${agent.hubCredential ? 'there' : 'not yet'}`,
            ...conditionLines(agent.conditions),
          ]),
          'Deployments:',
          ...partLines(parts),
          'Kinds (* is stored):',
          ...Object.entries(kinds).map(([name, versions]) => `  ${name}: ${versions}`),
        ].join('\n'),
      )
    }),
})
