import { known, perhaps, type StepResult } from '../doctor/faults.ts'
import { gatherAws } from '../doctor/gather-aws.ts'
import { gatherHub } from '../doctor/gather-hub.ts'
import { gatherManaged } from '../doctor/gather-managed.ts'
import { walkCluster, walkHub } from '../doctor/index.ts'
import { isStuck, reportText, stateOf, type Report } from '../doctor/report.ts'
import { sideFlags, sidesOf, type Sides } from '../doctor/sides.ts'
import type { HubView, Snapshot } from '../doctor/snapshot.ts'
import { defineCommand, outputFlag, type Cli } from '../command.ts'
import { CliError, exitCode } from '../errors.ts'
import { checkedName } from '../names.ts'
import { UsageError } from '../../main/flags.ts'
import { namespace } from '../../operator/contract.ts'

const flags = { ...sideFlags, ...outputFlag } as const
type Doctor = Cli<typeof flags>

export default defineCommand({
  text: 'Walks the way by which a cluster joins its hub, from both ends with whatever kubeconfigs it has, and says which step is stuck, why, and the one command that moves it on. It changes nothing. Its exit code is 1 when something is stuck.',
  flags,
  args: [
    {
      name: 'CLUSTER',
      about: 'The cluster; without it all of a hub, or the one that is managed',
      optional: true,
      completes: 'clusters',
    },
  ],
  examples: [
    'doctor',
    'doctor c1 --hub-context hub --managed-context c1',
    'doctor c1 --kubeconfig hub.kubeconfig --managed-kubeconfig c1.kubeconfig -o json',
  ],
  run: async (cli) => {
    const [asked] = cli.args
    if (asked !== undefined) checkedName('CLUSTER', asked)
    const sides = await sidesOf(cli)
    try {
      const report = await examine(cli, sides, asked)
      await cli.out.data(cli.flags.output, report, () => reportText(report, { paint: painter(cli.out.colour) }))
      return isStuck(report) ? exitCode.failed : exitCode.done
    } finally {
      sides.hub?.client.close()
      sides.managed?.client.close()
    }
  },
})

const examine = async (cli: Doctor, sides: Sides, asked: string | undefined): Promise<Report> => {
  const same = sides.hub?.connection.server === sides.managed?.connection.server
  // What the managed cluster is called narrows down what is asked of the hub.
  const managed =
    sides.managed && (await gatherManaged(cli, sides.managed, { name: same ? undefined : asked, isHub: same }))
  const name = asked ?? (same ? undefined : managed?.name)
  if (managed && !name && !same)
    throw new CliError('nothing on the managed cluster says what it is called on a hub: it has not been told to join', {
      next: `say it: ${cli.program} doctor NAME, with the words that were used now`,
    })
  const place = cli.flags['hub-namespace'] ? checkedName('--hub-namespace', cli.flags['hub-namespace']) : undefined
  const hub = sides.hub && (await gatherHub(sides.hub, { name, namespace: place }, cli.signal))
  const [manager] = perhaps(hub?.managers) ?? []
  if (manager && place && place !== namespace.hub)
    throw new UsageError(
      `--hub-namespace says ${place}, and ClusterManager ${manager.metadata.name} runs its hub in ${namespace.hub}`,
    )
  const about = (of: string): Snapshot => ({
    now: cli.clock.now(),
    name: of,
    program: cli.program,
    words: sides.words,
    hub,
    managed: managed && (!managed.name || managed.name === of) ? managed.view : undefined,
  })
  // One cluster only: a call to AWS for each of a fleet would be one too many.
  const clients = { hub: sides.hub?.client, managed: sides.managed?.client }
  const aws = name ? await gatherAws(cli, about(name), clients) : undefined
  const names = name ? [name] : namesOn(hub)
  const clusters = names.map((of) => {
    const steps = walkCluster({ ...about(of), aws })
    return { name: of, state: stateOf(steps), steps }
  })
  return {
    hub: hub && { server: hub.server, steps: walkHub(about(name ?? '')) },
    managed: managed && { server: managed.view.server },
    clusters,
  }
}

/** Where the clusters cannot be listed, the steps of the hub say why. */
const namesOn = (hub: HubView | undefined): string[] =>
  hub && 'is' in hub.clusters
    ? known(hub.clusters)
        .map(({ metadata }) => metadata.name!)
        .toSorted()
    : []

const colours = { ok: 32, stuck: 31, unknown: 33 } as const
const painter =
  (colour: boolean) =>
  (state: StepResult['state'], text: string): string =>
    colour ? `\u001b[${colours[state]}m${text}\u001b[0m` : text
