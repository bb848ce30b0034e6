import { ManagedClusterAddOn } from '../../api/index.ts'
import { installedByAnnotation, installOnAnnotation } from '../../addons/hub/index.ts'
import { addOnFlags, addOnsOf, chosenClusters, clustersFor } from '../add-on-choice.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { CliError } from '../errors.ts'
import { missing, sayDryRun } from '../names.ts'
import { untilGone } from '../wait.ts'

export default defineCommand({
  text: 'Disables add-ons on clusters, and waits until they are gone there. Only on the clusters that are named: for all of them say --all-clusters.',
  flags: { ...addOnFlags, wait: { help: 'Until they are gone', default: true } },
  args: [{ name: 'NAME', about: 'add-ons, as with --names', optional: true, many: true, completes: 'addons' }],
  examples: ['addon disable --names hello --clusters c1', 'addon disable hello --all-clusters'],
  run: async (cli) => {
    const { flags, signal } = cli
    const names = addOnsOf(flags, cli.args)
    const chosen = chosenClusters(flags)
    sayDryRun(cli)
    await withHub(cli, async ({ client }) => {
      const clusters = await clustersFor(client, chosen, signal)
      const { items } = await client.of(ManagedClusterAddOn).list({ metadataOnly: true, signal })
      const enabled = [...new Set(items.map(({ metadata }) => metadata.name!))]
      for (const name of names) if (!enabled.includes(name)) throw await missing('enabled add-on', name, enabled)
      const targets = items
        .filter(({ metadata }) => names.includes(metadata.name!) && clusters.includes(metadata.namespace!))
        .map(({ metadata }) => metadata)
      // Before anything is deleted: a rule would bring it back, and the person would not know why.
      const ruled = targets.find(({ annotations }) => annotations?.[installedByAnnotation])
      if (ruled)
        throw new CliError(
          `add-on ${ruled.name} on cluster ${ruled.namespace} is installed by rule, and would come back`,
          {
            next: `change the rule: kubectl annotate --overwrite clustermanagementaddon ${ruled.name} ${installOnAnnotation}=…, or ${installOnAnnotation}- to end it`,
          },
        )
      const on = (cluster: string, name: string): string => `add-on ${name} on cluster ${cluster}`
      for (const cluster of chosen)
        for (const name of names)
          if (!targets.some((one) => one.namespace === cluster && one.name === name))
            cli.out.line(`${on(cluster, name)}: is not enabled`)
      const write = { dryRun: flags['dry-run'], signal }
      for (const { namespace = '', name = '' } of targets)
        await client.of(ManagedClusterAddOn, namespace).delete(name, write)
      for (const { namespace = '', name = '' } of targets) {
        if (flags.wait && !flags['dry-run'])
          await cli.progress.step(
            `waiting until ${on(namespace, name)} is gone`,
            (step) => untilGone(client.of(ManagedClusterAddOn, namespace), name, { step, clock: cli.clock }),
            { timeoutMs: flags.timeout * 1000, next: `is its agent running? ${cli.program} get clusters ${namespace}` },
          )
        cli.out.line(`${on(namespace, name)}: ${flags['dry-run'] ? 'would be disabled' : 'disabled'}`)
      }
    })
  },
})
