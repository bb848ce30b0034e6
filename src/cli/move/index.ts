/**
 * The three ways of `move`: from cluster to cluster, into a directory, and out of one. The way back is in abort.ts; what to say when a
 * run is cut off in told.ts. What is done is in ../../identities/move.
 */
import {
  hubAt,
  isPausable,
  moveBundle,
  planOf,
  prepareExport,
  prepareImport,
  prepareMove,
  stopForExport,
  type Bundle,
  type Obstacle,
  type PlanLine,
  type Prepared,
} from '../../identities/move/index.ts'
import { regionOf } from '../aws/session.ts'
import { withCluster } from '../cluster.ts'
import type { Table } from '../output.ts'
import { readBundle, writeBundle } from './directory.ts'
import { namespaceOf, withTarget, type Move } from './sides.ts'
import { goOn, goOnOrBack, refusal, told } from './told.ts'

export { abortMoveOf } from './abort.ts'

export const moveClusters = (cli: Move): Promise<void> =>
  withCluster(cli, async (cluster) => {
    const source = await hubAt(cluster.client, cli.flags['hub-namespace'], cli.signal)
    await withTarget(cli, async (target) =>
      carryOut(cli, await prepareMove(source, target, namespaceOf(cli, cluster), optionsOf(cli))),
    )
  })

export const importClusters = (cli: Move, path: string): Promise<void> =>
  withTarget(cli, async (target) => carryOut(cli, await prepareImport(await readBundle(path), target, optionsOf(cli))))

export const exportClusters = (cli: Move, path: string): Promise<void> =>
  withCluster(cli, async (cluster) => {
    const source = await hubAt(cluster.client, cli.flags['hub-namespace'], cli.signal)
    const namespace = namespaceOf(cli, cluster)
    const { bundle, obstacles } = await prepareExport(source, namespace, optionsOf(cli))
    if (obstacles.length > 0) throw refusal(obstacles)
    if (bundle.items.length === 0) return cli.out.line(nothingIn(namespace))
    if (cli.flags['dry-run'])
      return cli.out.data(cli.flags.output, bundle.items.map(exportLine), () => exportTable(bundle))
    await told(cli, goOn, async (steps) => {
      const still = await stopForExport(source, bundle, steps)
      const { files, withheld } = await writeBundle(path, still, { includeSecrets: cli.flags['include-secrets'] })
      cli.out.line(`${files} objects of namespace ${namespace} are in ${path}; ${secretWords(cli, withheld)}.`)
      cli.out.line(`The clusters are paused, so that only one management cluster ever acts for them. Go on elsewhere:`)
      cli.out.line(`  ${cli.program} move --from-directory ${path} --to-kubeconfig FILE`)
      cli.out.line('or here, with the kubeconfig of this one.')
    })
  })

const secretWords = (cli: Move, withheld: number): string => {
  if (withheld > 0) return `${withheld} Secrets are there by name only, without their content`
  return cli.flags['include-secrets'] ? 'Secrets are in clear: keep it as you would keep them' : 'there is no Secret'
}

const carryOut = async (
  cli: Move,
  { move, obstacles }: { move: Prepared; obstacles: readonly Obstacle[] },
): Promise<void> => {
  if (obstacles.length > 0) throw refusal(obstacles)
  const { bundle, present, target } = move
  const plan = planOf(move)
  if (plan.length === 0 && present.coming.length === 0) return cli.out.line(nothingIn(bundle.namespace))
  if (bundle.left.length > 0)
    cli.progress.warn(`these belong to no cluster and stay where they are: ${bundle.left.slice(0, 20).join(', ')}`)
  if (cli.flags['dry-run']) return cli.out.data(cli.flags.output, plan, () => planTable(plan))
  const wayOn = move.source ? goOnOrBack : goOn
  await told(cli, wayOn, (steps) => moveBundle(move, steps))
  const clusters = bundle.items.filter(({ resource }) => isPausable(resource)).length
  const what =
    clusters > 0
      ? `${plan.length} objects of namespace ${bundle.namespace}`
      : `What was on its way to namespace ${bundle.namespace}`
  await cli.out.data(
    cli.flags.output,
    plan,
    () =>
      `${what} ${clusters > 0 ? 'are' : 'is'} on ${target.client.connection.server} now, which acts for the clusters.`,
  )
}

const optionsOf = (cli: Move) => ({
  keepAllowedNamespaces: cli.flags['keep-allowed-namespaces'],
  defaultRegion: regionOf(cli),
  checkAccount: cli.flags['account-check'],
  signal: cli.signal,
})

const nothingIn = (namespace: string): string => `There is no cluster in namespace ${namespace}: nothing to move.`

const planTable = (plan: readonly PlanLine[]): Table => ({
  columns: ['kind', 'name', 'source', 'target', 'note'],
  rows: plan.map(({ kind, name, source, target, note }) => [kind, name, source, target, note]),
  none: 'Nothing is left to be moved; what is paused on the target would be let go.',
})

const exportLine = ({ resource, object }: Bundle['items'][number]) => ({
  kind: resource.kind,
  name: `${object.metadata.namespace ? `${object.metadata.namespace}/` : ''}${object.metadata.name}`,
})

const exportTable = ({ items }: Bundle): Table => ({
  columns: ['kind', 'name'],
  rows: items.map(exportLine).map(({ kind, name }) => [kind, name]),
  none: 'Nothing.',
})
