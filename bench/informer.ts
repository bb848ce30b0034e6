import { startControlPlane } from '../testkit/index.ts'
import { programFlags } from './built-program.ts'
import { startChild, type Child } from './child-process.ts'
import { createFleet } from './fleet.ts'
import { compare, inTurn, medians, progress, rounded, type Bench, type Figures } from './measure.ts'

const objects = 5000
const writes = 1500
const rounds = 3
const versus = '@kubernetes/client-node'
const sides = ['lanyard', 'client-node', 'bare'] as const

/** What one informer reported in one round. */
interface Round {
  start: Figures
  memory: Figures
  watch: Figures
}

/** R0.41 Start-up, memory and watch of an informer of 5,000 ManagedClusters. */
export const informer: Bench = async (print) => {
  progress('informer: starting a control plane')
  await using plane = await startControlPlane({ controllerManager: false, audit: false })
  await createFleet(plane.client(), objects)
  const { kubeconfig } = plane
  // Each side as its users start it.
  const child = (script: string, round: string): Child => {
    const flags = ['--expose-gc', ...(script.includes('lanyard') ? programFlags() : [])]
    return startChild(script, { kubeconfig, round, writes }, { flags })
  }
  const reported = async (script: string, round = 'none'): Promise<Figures> => {
    const one = child(script, round)
    const figures = await one.report()
    await one.end()
    return figures
  }

  const emptyHeap: Record<string, number> = {}
  for (const side of ['lanyard', 'client-node'] as const)
    emptyHeap[side] = (await reported(`heap-${side}.ts`))['heapMB']!

  const begin = async (side: (typeof sides)[number], round: string) => {
    const one = child(`informer-${side}.ts`, round)
    const start = await one.report()
    if (start['objects'] !== objects) throw new Error(`${side} holds ${start['objects']} of ${objects} objects`)
    const { rssMB, heapMB } = (await one.ask()) as { rssMB: number; heapMB: number }
    const memory = { rssMB, heapMB, heapPerObjectKB: ((heapMB - (emptyHeap[side] ?? 0)) * 1024) / objects }
    return { child: one, start: omit(start, 'objects'), memory }
  }
  const finish = async (begun: Awaited<ReturnType<typeof begin>>): Promise<Round> => {
    const watch = await begun.child.report()
    await begun.child.end()
    if (watch['updates'] !== writes) throw new Error(`an informer saw ${watch['updates']} of ${writes} changes`)
    return { start: begun.start, memory: begun.memory, watch: omit(watch, 'updates') }
  }

  const ours: Round[] = []
  const baseline: Round[] = []
  const bare: Round[] = []
  for (let index = 0; index < rounds; index++) {
    const round = `r${index}`
    progress(`informer: round ${index + 1} of ${rounds}: filling the caches`)
    const begun = await inTurn(
      index,
      () => begin('lanyard', round),
      () => begin('client-node', round),
    )
    const least = await begin('bare', round)
    // All watch the same changes at the same time: the same batches, the same neighbours on the machine.
    await Promise.all([begun.ours.child.ask(), begun.baseline.child.ask(), least.child.ask()])
    progress(`informer: round ${index + 1} of ${rounds}: ${writes} changes`)
    const results = Promise.all([finish(begun.ours), finish(begun.baseline), finish(least)])
    const [[mine, theirs, floor]] = await Promise.all([results, reported('writer.ts', round)])
    ours.push(mine)
    baseline.push(theirs)
    bare.push(floor)
  }

  const line = (part: keyof Round, about: object, atMost: Record<string, number>): void =>
    print(
      compare({
        bench: `informer.${part}`,
        // Beside it what a bare Node process needs, so that everybody sees how much of it is ours.
        about: { objects, ...about, bareNode: rounded(medians(bare.map((round) => round[part]))) },
        ours: ours.map((round) => round[part]),
        baseline: baseline.map((round) => round[part]),
        versus,
        atMost,
      }),
    )
  line('start', {}, { cpuMs: 1 / 3, rssMB: 1 / 2 })
  line('memory', {}, { rssMB: 1 / 2 })
  line('watch', { events: writes }, { cpuPerEventUs: 1 / 3 })
}

const omit = (figures: Figures, name: string): Figures => {
  const { [name]: _, ...rest } = figures
  return rest
}
