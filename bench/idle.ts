import { setTimeout as sleep } from 'node:timers/promises'
import {
  ClusterPermission,
  installCrds,
  ManagedClusterAddOn,
  ManagedServiceAccount,
  ManifestWork,
} from '../src/api/index.ts'
import { keptFolder, removeKeptFolder, startControlPlane } from '../testkit/index.ts'
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

/** The resident memory of a controller process that has nothing to do. */
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

  const compileCache = keptFolder('bench')
  const begin = async (userAgent: string, options = {}): Promise<Child> => {
    const child = startChild('idle.ts', { kubeconfig: plane.kubeconfig, userAgent }, options)
    await child.report()
    return child
  }
  progress('idle: filling the compile cache')
  await (await begin('bench-warm', { compileCache })).end()
  const cached = await Promise.all(Array.from({ length: processes }, (_, i) => begin(`bench-${i}`, { compileCache })))
  const uncached = await begin('bench-uncached')
  const nothing = new Child('bare node', ['-e', bare])
  await nothing.report()
  await sleep(2000) // what starting left behind settles

  progress(`idle: looking at ${cached.length + 2} processes for ${seconds} s`)
  const since = new Date()
  const samples = await sampled([...cached, uncached, nothing])
  const requests = await plane.requestsBy('bench-0', { since })
  const toStart = await plane.requestsBy('bench-0')
  await Promise.all([...cached, uncached, nothing].map((child) => child.end()))
  removeKeptFolder(compileCache)

  const ours = samples.slice(0, processes)
  const rssMB = median(ours.flat().map((one) => one['rssMB']!))
  const rssOf = (which: Figures[]): number => median(which.map((one) => one['rssMB']!))
  print({
    bench: 'idle.rss',
    informers: 10,
    objects: clusters,
    rounds: processes,
    ...rounded({
      rssMB,
      highestRssMB: Math.max(...ours.flat().map((one) => one['rssMB']!)),
      withoutCompileCacheRssMB: rssOf(samples[processes]!),
      cpuMsPerMinute: median(ours.map((one) => one.at(-1)!['cpuMs']! - one[0]!['cpuMs']!)) * (60 / seconds),
      requestsToStart: toStart.total - requests.total,
      requestsPerMinute: requests.total * (60 / seconds),
    }),
    baseline: rounded({ rssMB: rssOf(samples[processes + 1]!) }),
    ratio: rounded({ rssMB: rssMB / rssOf(samples[processes + 1]!) }),
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
