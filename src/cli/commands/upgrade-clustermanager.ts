import { ClusterManager } from '../../api/index.ts'
import { deploymentName, namespace, operatorName } from '../../operator/contract.ts'
import { firstManager, hubImage, hubInstall } from '../../operator/index.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { untilAvailable } from '../deployment.ts'
import { sayDryRun } from '../names.ts'
import { untilClusterManager } from '../settled.ts'
import { upgrade, upgradeFlags } from '../upgrade.ts'

export default defineCommand({
  text: 'Moves the hub to another version: CRDs, rights and operator, which then moves the hub. The ClusterManager stays as it is.',
  flags: upgradeFlags,
  examples: ['upgrade clustermanager --bundle-version 0.2.0 --wait'],
  run: async (cli) => {
    sayDryRun(cli)
    await withHub(cli, async (cluster) => {
      const missing = `make this cluster a hub: ${cli.program} init`
      const image = await upgrade(cli, cluster, { operator: operatorName.hub, missing, install: hubInstall })
      if (!cli.flags.wait || cli.flags['dry-run']) return
      const waiting = { ...cli, client: cluster.client, timeoutMs: cli.flags.timeout * 1000 }
      await untilAvailable(waiting, namespace.operator, operatorName.hub)
      const { items } = await cluster.client.of(ClusterManager).list({ signal: cli.signal })
      const manager = firstManager(items)
      if (!manager) return
      const name = manager.metadata.name!
      await untilAvailable(waiting, namespace.hub, deploymentName.hub(name), hubImage(manager.spec ?? {}, image))
      await untilClusterManager(waiting, name)
    })
  },
})
