import { Klusterlet } from '../../api/index.ts'
import { deploymentName, namespace, operatorName } from '../../operator/contract.ts'
import { agentImage, managedInstall } from '../../operator/index.ts'
import { withManaged } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { untilAvailable } from '../deployment.ts'
import { agentNamespace } from '../leaving.ts'
import { sayDryRun } from '../names.ts'
import { untilKlusterlet } from '../settled.ts'
import { upgrade, upgradeFlags } from '../upgrade.ts'

export default defineCommand({
  text: 'Moves the agent of this cluster to another version: CRDs, rights and operator, which then moves the agent. The Klusterlet stays as it is.',
  flags: upgradeFlags,
  examples: ['upgrade klusterlet --bundle-version 0.2.0 --wait'],
  run: async (cli) => {
    sayDryRun(cli)
    await withManaged(cli, async (cluster) => {
      const missing = `let this cluster join a hub: ${cli.program} join --help`
      const image = await upgrade(cli, cluster, { operator: operatorName.managed, missing, install: managedInstall })
      if (!cli.flags.wait || cli.flags['dry-run']) return
      const waiting = { ...cli, client: cluster.client, timeoutMs: cli.flags.timeout * 1000 }
      await untilAvailable(waiting, namespace.operator, operatorName.managed)
      const { items } = await cluster.client.of(Klusterlet).list({ signal: cli.signal })
      for (const klusterlet of items) {
        const { metadata, spec } = klusterlet
        const runs = deploymentName.agent(metadata.name!)
        await untilAvailable(waiting, agentNamespace(klusterlet), runs, agentImage(spec ?? {}, image))
        await untilKlusterlet(waiting, metadata.name!)
      }
    })
  },
})
