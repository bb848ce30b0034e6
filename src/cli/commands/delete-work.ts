import { ManifestWork } from '../../api/index.ts'
import { UsageError } from '../../main/flags.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { clustersFlags, clustersOf, sayDryRun } from '../names.ts'
import { untilGone } from '../wait.ts'

export default defineCommand({
  text: 'Takes a work away from clusters, and waits until they have removed what it brought.',
  flags: {
    ...clustersFlags,
    force: { help: 'Do not wait for the clusters: what the work brought stays there', default: false },
    wait: { help: 'Until it is gone', default: true },
  },
  args: [{ name: 'NAME', about: 'the name of the work', completes: 'works' }],
  examples: ['delete work hello --clusters c1'],
  run: async (cli) => {
    const [name = ''] = cli.args
    const clusters = clustersOf(cli.flags)
    const { 'dry-run': dryRun, force } = cli.flags
    if (clusters.length === 0) throw new UsageError('--clusters is missing: name the clusters that lose the work')
    sayDryRun(cli)
    await withHub(cli, async ({ client }) => {
      for (const cluster of clusters) {
        const works = client.of(ManifestWork, cluster)
        const existed = await works.delete(name, { dryRun, signal: cli.signal })
        if (!existed) {
          cli.out.line(`work ${name} of cluster ${cluster}: there is none`)
          continue
        }
        const left = !dryRun && force ? await works.find(name, { signal: cli.signal }) : undefined
        if (left) {
          await works.patch(name, { merge: { metadata: { finalizers: null } } }, { signal: cli.signal })
          cli.progress.warn(`what work ${name} brought to cluster ${cluster} may stay there`)
        }
        if (!dryRun && cli.flags.wait)
          await cli.progress.step(
            `waiting for cluster ${cluster} to remove what work ${name} brought`,
            (step) => untilGone(works, name, { step, clock: cli.clock }),
            {
              timeoutMs: cli.flags.timeout * 1000,
              next: `is its agent running? ${cli.program} get clusters ${cluster}; without it: --force`,
            },
          )
        cli.out.line(`work ${name} of cluster ${cluster}: deleted`)
      }
    })
  },
})
