import { startControlPlane } from '../testkit/index.ts'
import { programFlags } from './built-program.ts'
import { startChild } from './child-process.ts'
import { createFleet, nameOf } from './fleet.ts'
import { compare, inTurn, progress, type Bench, type Figures } from './measure.ts'

const gets = 200
const rounds = 3
const versus = '@kubernetes/client-node'

/** R0.41 Sequential GETs of one object. */
export const client: Bench = async (print) => {
  progress('client: starting a control plane')
  await using plane = await startControlPlane({ controllerManager: false, audit: false })
  await createFleet(plane.client(), 1)
  const side = (name: string, flags: string[]) => async (): Promise<Figures> => {
    const settings = { kubeconfig: plane.kubeconfig, name: nameOf(0), gets }
    const child = startChild(`client-${name}.ts`, settings, { flags })
    const figures = await child.report()
    await child.end()
    return figures
  }
  progress(`client: ${rounds} rounds of ${gets} GETs`)
  const measured: { ours: Figures; baseline: Figures }[] = []
  for (let round = 0; round < rounds; round++)
    measured.push(await inTurn(round, side('lanyard', programFlags()), side('client-node', [])))

  const line = (bench: string, names: string[], atMost: Record<string, number>): void => {
    const of = (which: 'ours' | 'baseline') => measured.map((round) => only(names, round[which]))
    print(
      compare({
        bench,
        about: { gets },
        ours: of('ours'),
        baseline: of('baseline'),
        versus,
        atMost,
      }),
    )
  }
  line('client.get', ['cpuMs', 'ms'], { cpuMs: 1 / 3 })
  line('client.memory', ['rssMB'], { rssMB: 1 / 2 })
}

const only = (names: readonly string[], figures: Figures): Figures =>
  Object.fromEntries(names.map((name) => [name, figures[name] ?? Number.NaN]))
