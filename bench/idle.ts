import { setTimeout as sleep } from 'node:timers/promises'
import {
  ClusterPermission,
  installCrds,
  ManagedClusterAddOn,
  ManagedServiceAccount,
  ManifestWork,
} from '../src/api/index.ts'
import { startControlPlane } from '../testkit/index.ts'
import { programFlags } from './built-program.ts'
import { Child, startChild } from './child-process.ts'
import { createFleet } from './fleet.ts'
import { median, progress, rounded, type Bench, type Figures } from './measure.ts'

const targetMB = 90
const clusters = 100
const processes = 3
const seconds = 10

/** A process that does nothing at all, and answers as children/child.ts does. */
const bare = `setInterval(() => {}, 1e3)
process.once('disconnect', () => process.exit(0))
process.on('message', () => process.send({ rssMB: process.memoryUsage.rss() / 2 ** 20, cpuMs: 0 }))
process.send({})`

/** R0.42 The resident memory of a controller process that has nothing to do, started as the program is; beside it, without its flags. */
export const idle: Bench = async (print) => {
  progress('idle: starting a control plane')
  await using plane = await startControlPlane({ controllerManager: false })
  const admin = plane.client()
  const kinds = [ManagedClusterAddOn, ManifestWork, ManagedServiceAccount, ClusterPermission]
  await installCrds(
    admin,
    kinds.map((kind) => kind.crd({ conversion: 'none' })),
  )
  await createFleet(admin, clusters)

  const begin = async (userAgent: string, flags: string[]): Promise<Child> => {
    const child = startChild('idle.ts', { kubeconfig: plane.kubeconfig, userAgent }, { flags })
    await child.report()
    return child
  }
  progress('idle: starting the processes')
  const ours = await Promise.all(Array.from({ length: processes }, (_, i) => begin(`bench-${i}`, programFlags())))
  const plain = await begin('bench-plain', [])
  const nothing = new Child('bare node', ['-e', bare])
  await nothing.report()
  await sleep(2000) // what starting left behind settles

  progress(`idle: looking at ${processes + 2} processes for ${seconds} s`)
  const since = new Date()
  const samples = await sampled([...ours, plain, nothing])
  const requests = await plane.requestsBy('bench-0', { since })
  const all = await plane.requestsBy('bench-0')
  await Promise.all([...ours, plain, nothing].map((child) => child.end()))

  const rss = (from: number, to = from + 1): number[] =>
    samples.slice(from, to).flatMap((answers) => answers.map((one) => one['rssMB']!))
  const cpu = samples.slice(0, processes).map((answers) => answers.at(-1)!['cpuMs']! - answers[0]!['cpuMs']!)
  const rssMB = median(rss(0, processes))
  const bareMB = median(rss(processes + 1))
  print({
    bench: 'idle.rss',
    informers: 10,
    objects: clusters,
    rounds: processes,
    ...rounded({
      rssMB,
      highestRssMB: Math.max(...rss(0, processes)),
      withoutFlagsRssMB: median(rss(processes)),
      cpuMsPerMinute: median(cpu) * (60 / seconds),
      requestsToStart: all.total - requests.total,
      requestsPerMinute: requests.total * (60 / seconds),
    }),
    baseline: rounded({ rssMB: bareMB }),
    ratio: rounded({ rssMB: rssMB / bareMB }),
    target: `rssMB at most ${targetMB}; the baseline is a bare Node process`,
    targetMB,
    ok: rssMB <= targetMB,
  })
}

/** The answers of each process, asked every second. */
const sampled = async (children: Child[]): Promise<Figures[][]> => {
  const samples: Figures[][] = children.map(() => [])
  for (let second = 0; second <= seconds; second++) {
    const answers = await Promise.all(children.map((child) => child.ask()))
    for (const [index, answer] of answers.entries()) samples[index]!.push(answer)
    if (second < seconds) await sleep(1000)
  }
  return samples
}
