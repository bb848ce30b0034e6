import { conditionType, ManifestWork } from '../../api/index.ts'
import { findCondition } from '../../runtime/index.ts'
import { ageOf } from '../age.ts'
import { withHub } from '../cluster.ts'
import { defineCommand, outputFlag } from '../command.ts'
import { clustersFlags, clustersOf, missing } from '../names.ts'

const factsOf = (work: ManifestWork) => {
  const state = (type: string): string => findCondition(work, type)?.status ?? 'Unknown'
  const applied = findCondition(work, conditionType.manifestWork.applied)
  return {
    name: work.metadata.name!,
    cluster: work.metadata.namespace!,
    manifests: work.spec.workload?.manifests?.length ?? 0,
    applied: applied?.status ?? 'Unknown',
    available: state(conditionType.manifestWork.available),
    problem: applied?.status === 'False' ? applied.message : '',
    created: work.metadata.creationTimestamp ?? '',
  }
}

export default defineCommand({
  text: 'Lists the works that this hub sends to clusters, of all clusters unless some are named.',
  flags: { ...clustersFlags, ...outputFlag },
  args: [{ name: 'NAME', about: 'Only this work', optional: true, completes: 'works' }],
  examples: ['get works --clusters c1', 'get works my-work -o yaml'],
  run: (cli) =>
    withHub(cli, async ({ client }) => {
      const clusters = clustersOf(cli.flags)
      const namespaces = clusters.length > 0 ? clusters : [undefined]
      const lists = await Promise.all(
        namespaces.map((namespace) => client.of(ManifestWork, namespace).list({ signal: cli.signal })),
      )
      const all = lists
        .flatMap(({ items }) => items.map(factsOf))
        .toSorted((a, b) => a.cluster.localeCompare(b.cluster) || a.name.localeCompare(b.name))
      const [name] = cli.args
      const chosen = name ? all.filter((one) => one.name === name) : all
      if (name && chosen.length === 0) throw await missing('work', name, [...new Set(all.map((one) => one.name))])
      await cli.out.data(cli.flags.output, chosen, () => ({
        columns: ['Name', 'Cluster', 'Manifests', 'Applied', 'Available', 'Age', 'Problem'],
        rows: chosen.map((one) => [
          one.name,
          one.cluster,
          String(one.manifests),
          one.applied,
          one.available,
          ageOf(one.created, cli.clock.now()),
          one.problem,
        ]),
        none: 'No works.',
      }))
    }),
})
