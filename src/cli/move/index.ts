/** The three ways of `move`: from cluster to cluster, into a directory, and out of one. What is done is in ../../identities/move. */
import {
  hubAt,
  isPausable,
  moveBundle,
  MoveRefused,
  planOf,
  prepareExport,
  prepareImport,
  prepareMove,
  stopForExport,
  type Bundle,
  type Hub,
  type Obstacle,
  type PlanLine,
  type Prepared,
  type Steps,
} from '../../identities/move/index.ts'
import { ReconcileError } from '../../runtime/index.ts'
import { regionOf } from '../aws/session.ts'
import { withCluster, type Cluster } from '../cluster.ts'
import type { Cli } from '../command.ts'
import { CliError } from '../errors.ts'
import type { Table } from '../output.ts'
import { readBundle, writeBundle } from './directory.ts'

type Move = Cli & {
  flags: {
    'to-kubeconfig': string
    'to-context': string
    'to-hub-namespace': string
    'hub-namespace': string
    'include-secrets': boolean
    'account-check': boolean
    'keep-allowed-namespaces': boolean
    namespace: string
    region: string
    output: string
  }
}

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
    await told(async () => {
      const still = await stopForExport(source, bundle, stepsOf(cli))
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
  await told(() => moveBundle(move, stepsOf(cli), { checkAccount: cli.flags['account-check'] }))
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
  signal: cli.signal,
})

const namespaceOf = (cli: Move, { kubeconfig, context }: Cluster): string =>
  cli.flags.namespace || kubeconfig.contexts.get(context)?.value.namespace || 'default'

const withTarget = <T>(cli: Move, run: (target: Hub) => Promise<T>): Promise<T> => {
  const { 'to-kubeconfig': file, 'to-context': context, 'to-hub-namespace': space } = cli.flags
  // Without a file it is another context of the same one.
  const where = { kubeconfig: file || cli.flags.kubeconfig, context: context || (file ? '' : cli.flags.context) }
  return withCluster({ env: cli.env, program: cli.program, flags: where }, async ({ client }) =>
    run(await hubAt(client, space || cli.flags['hub-namespace'], cli.signal)),
  )
}

const stepsOf = (cli: Move): Steps => ({
  clock: cli.clock,
  step: (what, run, options) =>
    cli.progress.step(what, run, { timeoutMs: cli.flags.timeout * 1000, next: options?.next ?? again }),
})

const again = 'nothing is lost: run the same command again to go on from here, or give it longer with --timeout'

const refusal = (obstacles: readonly Obstacle[]): CliError =>
  obstacles.length === 1
    ? new CliError(`${obstacles[0]!.what}; nothing was changed`, { next: obstacles[0]!.next })
    : new CliError(`${obstacles.length} things stand in the way of the move; nothing was changed`, {
        next: obstacles.map(({ what, next }) => `- ${what}\n  ${next}`).join('\n'),
      })

/** Errors of the room in the words of the command line. */
const told = async (run: () => Promise<void>): Promise<void> => {
  try {
    await run()
  } catch (error) {
    if (error instanceof MoveRefused) throw refusal(error.obstacles)
    if (error instanceof ReconcileError) throw new CliError(error.message, { cause: error })
    throw error
  }
}

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
