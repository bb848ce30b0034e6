/** What the demo runs on, until it is told to stop: a hub and two clusters, each with a node that is this machine. */
import { writeFileSync } from 'node:fs'
import { jsonLogger } from '../../src/runtime/index.ts'
import { startControlPlane } from '../index.ts'
import { startRunner } from '../runner/index.ts'
import { writeContexts } from './contexts.ts'
import { clusters, demoPlace } from './place.ts'

const place = demoPlace(process.argv[2])
writeFileSync(place.pid, String(process.pid), { flag: 'wx' }) // two that start at once: the second one ends here
const stopped = new Promise<void>((resolve) => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve())
})
const log = jsonLogger((line) => process.stdout.write(line), { level: 'warn' })
const names = ['hub', ...clusters]
const planes = await Promise.all(names.map(() => startControlPlane({ audit: false })))
const runners = await Promise.all(planes.map((plane) => startRunner(plane, { log })))
await writeContexts(place.kubeconfig, new Map(names.map((name, at) => [name, planes[at]!])))
writeFileSync(place.ready, '')

// A timer keeps this process alive; its end takes everything along.
const alive = setInterval(() => {}, 60_000)
await stopped
clearInterval(alive)
await Promise.all(runners.map((runner) => runner.stop()))
await Promise.all(planes.map((plane) => plane.stop()))
