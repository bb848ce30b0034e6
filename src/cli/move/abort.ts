import {
  abortMove,
  hubAt,
  isUnderWay,
  prepareAbort,
  retreatPlan,
  type Retreat,
  type RetreatLine,
} from '../../identities/move/index.ts'
import { withCluster } from '../cluster.ts'
import type { Table } from '../output.ts'
import { namespaceOf, withTarget, type Move } from './sides.ts'
import { goOnAborting, refusal, told } from './told.ts'

/** `move --abort`. */
export const abortMoveOf = (cli: Move): Promise<void> =>
  withCluster(cli, async (cluster) => {
    const source = await hubAt(cluster.client, cli.flags['hub-namespace'], cli.signal)
    const namespace = namespaceOf(cli, cluster)
    await withTarget(cli, async (target) => {
      const { retreat, obstacles } = await prepareAbort(source, target, namespace, cli.signal)
      if (obstacles.length > 0) throw refusal(obstacles)
      if (!isUnderWay(retreat)) return cli.out.line(nothingUnderWay(cli, retreat))
      const plan = retreatPlan(retreat)
      if (cli.flags['dry-run']) return cli.out.data(cli.flags.output, plan, () => retreatTable(plan))
      await told(cli, goOnAborting, (steps) => abortMove(retreat, steps))
      await cli.out.data(cli.flags.output, plan, () => givenUp(cli, retreat))
    })
  })

const nothingUnderWay = (cli: Move, { namespace, source, exported }: Retreat): string =>
  exported.length > 0
    ? `The clusters of namespace ${namespace} are paused because they were written to a directory. To go on here: ${cli.program} move --from-directory DIRECTORY --to-kubeconfig FILE, with a kubeconfig of ${source.client.connection.server}.`
    : `No move of namespace ${namespace} to there is under way: nothing to give up.`

const givenUp = (cli: Move, { namespace, source, target, paused, exported }: Retreat): string => {
  const here = source.client.connection.server
  const acts = paused.length > 0 ? `: ${here} acts for its clusters again` : ''
  const left = exported.length > 0 ? ` What was written to a directory stays paused: ${cli.program} move --help.` : ''
  return `The move of namespace ${namespace} is given up${acts}. Identities and their keys that were copied to ${target.client.connection.server} stay there, and so does the namespace.${left}`
}

const retreatTable = (plan: readonly RetreatLine[]): Table => ({
  columns: ['kind', 'name', 'source', 'target'],
  rows: plan.map(({ kind, name, source, target }) => [kind, name, source, target]),
  none: 'Nothing.',
})
