import { spawn } from 'node:child_process'
import { crds, installCrds, ManagedCluster } from '../src/api/index.ts'
import { inParallel } from '../src/runtime/index.ts'
import { startControlPlane } from '../testkit/index.ts'
import { controlPlaneBinary } from '../testkit/paths.ts'
import { builtProgram } from './built-program.ts'
import { compare, progress, type Bench, type Figures } from './measure.ts'

const rounds = 11
const clusters = 1000
const mostTimes = 2.5

/** How a command starts: what a person waits for at each `--help`, and what a list of a large fleet costs. */
export const cli: Bench = async (print) => {
  const program = builtProgram()
  const bare = [process.execPath, '-e', '0']
  const start = { versus: 'a bare node -e 0', atMost: { wallMs: mostTimes } }
  for (const word of ['--help', 'version']) {
    progress(`cli: ${word}`)
    const { ours, baseline } = await inRounds([program, word], bare)
    print(compare({ bench: 'cli', ours, baseline, ...start, about: { command: word } }))
  }

  progress(`cli: a hub with ${clusters} clusters`)
  await using plane = await startControlPlane({ audit: false })
  const client = plane.client()
  await installCrds(client, crds({ conversion: 'none' }))
  const create = (_: unknown, at: number) => async () => {
    await client.of(ManagedCluster).create({ metadata: { name: `cluster-${at}` }, spec: {} })
  }
  await inParallel(32, Array.from({ length: clusters }, create))
  const list = [program, 'get', 'clusters', '--kubeconfig', plane.kubeconfig]
  const kubectl = [controlPlaneBinary('kubectl'), 'get', 'managedclusters', '--kubeconfig', plane.kubeconfig]
  const { ours, baseline } = await inRounds(list, [...kubectl, '--cache-dir', `${plane.folder}/kubectl`])
  print(
    compare({
      bench: 'cli',
      ours,
      baseline,
      versus: 'kubectl get managedclusters',
      atMost: { wallMs: 3 },
      about: { command: 'get clusters', clusters },
    }),
  )
}

/** Both in turn, after one round that fills the caches of both and does not count. */
const inRounds = async (ours: string[], baseline: string[]): Promise<{ ours: Figures[]; baseline: Figures[] }> => {
  const figures = { ours: [] as Figures[], baseline: [] as Figures[] }
  for (let round = 0; round <= rounds; round++) {
    const [mine, theirs] = [await measured(ours), await measured(baseline)]
    if (round === 0) continue
    figures.ours.push(mine)
    figures.baseline.push(theirs)
  }
  return figures
}

/** One run from its start to its end. Memory is asked of the process's own children afterwards: the largest that it was. */
const measured = async ([command = '', ...args]: string[]): Promise<Figures> => {
  const started = performance.now()
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const peak = peakOf(child.pid!)
  const code = await new Promise<number | null>((resolve) => child.on('exit', resolve))
  const wallMs = performance.now() - started
  if (code !== 0) throw new Error(`${[command, ...args].join(' ')} ended with ${code}`)
  return { wallMs, peakRssMB: (await peak) / 1024 }
}

/** The high-water mark of a process in kB, as the kernel keeps it: looked at until the process is gone. */
const peakOf = async (pid: number): Promise<number> => {
  const { readFile } = await import('node:fs/promises')
  let peak = 0
  for (;;) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
    const kB = /VmHWM:\s+(\d+)/.exec(status)?.[1]
    if (!kB) return peak
    peak = Math.max(peak, Number(kB))
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
