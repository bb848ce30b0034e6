import { conditionType, ManagedCluster, ManifestWork } from '../../api/index.ts'
import { UsageError } from '../../main/flags.ts'
import { equal, findCondition } from '../../runtime/index.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { CliError } from '../errors.ts'
import { readManifests } from '../manifests.ts'
import { clustersFlags, clustersOf, missing, sayDryRun } from '../names.ts'
import { untilObject } from '../wait.ts'

export default defineCommand({
  text: 'Sends manifests to clusters as a ManifestWork. What is sent already stays as it is.',
  flags: {
    ...clustersFlags,
    filename: { help: 'Manifests: a file, a folder, or - for stdin', default: [], short: 'f', value: 'FILE' },
    overwrite: { help: 'Replace a work of this name that holds something else', default: false },
    wait: { help: 'Until the clusters have applied it', default: false },
  },
  args: [{ name: 'NAME', about: 'the name of the work' }],
  examples: ['create work hello -f deployment.yaml --clusters c1,c2 --wait'],
  run: async (cli) => {
    const [name = ''] = cli.args
    const { filename, overwrite, 'dry-run': dryRun } = cli.flags
    const clusters = clustersOf(cli.flags)
    if (clusters.length === 0) throw new UsageError('--clusters is missing: name the clusters that get the work')
    if (filename.length === 0) throw new UsageError('-f is missing: give the manifests, or - for stdin')
    const manifests = await readManifests(cli, filename)
    sayDryRun(cli)
    await withHub(cli, async ({ client }) => {
      const { signal } = cli
      const known = (await client.of(ManagedCluster).list({ metadataOnly: true, signal })).items.map(
        ({ metadata }) => metadata.name!,
      )
      for (const cluster of clusters) if (!known.includes(cluster)) throw await missing('cluster', cluster, known)
      const present = await Promise.all(
        clusters.map((cluster) => client.of(ManifestWork, cluster).find(name, { signal })),
      )
      const other = present.findIndex((work) => work && !equal(work.spec.workload?.manifests, manifests))
      // Before anything is written: half of the clusters with the new work help nobody.
      if (other >= 0 && !overwrite)
        throw new CliError(`cluster ${clusters[other]} has a work ${name} with other manifests`, {
          next: 'give --overwrite to replace it, or use another name',
        })
      for (const [at, cluster] of clusters.entries()) {
        const works = client.of(ManifestWork, cluster)
        const work = present[at]
        if (!work)
          await works.create(
            { metadata: { name, namespace: cluster }, spec: { workload: { manifests } } },
            { dryRun, signal },
          )
        else if (!equal(work.spec.workload?.manifests, manifests))
          await works.patch(name, { merge: { spec: { workload: { manifests } } } }, { dryRun, signal })
        const did = !work ? 'created' : equal(work.spec.workload?.manifests, manifests) ? 'unchanged' : 'updated'
        cli.out.line(`work ${name} of cluster ${cluster}: ${did}`)
      }
      if (!cli.flags.wait || dryRun) return
      for (const cluster of clusters)
        await cli.progress.step(
          `waiting for cluster ${cluster} to apply work ${name}`,
          (step) =>
            untilObject(client.of(ManifestWork, cluster), name, { step, clock: cli.clock }, (work) => {
              if (!work) throw new CliError(`work ${name} of cluster ${cluster} was deleted meanwhile`)
              const applied = findCondition(work, conditionType.manifestWork.applied)
              const current = applied?.observedGeneration === work.metadata.generation
              if (applied?.status === 'True' && current) return { done: undefined }
              return { seen: current ? (applied?.message ?? '') : 'its agent has not said anything yet' }
            }),
          { timeoutMs: cli.flags.timeout * 1000, next: `look at it: ${cli.program} get works ${name} -o yaml` },
        )
    })
  },
})
