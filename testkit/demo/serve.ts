/** The demo itself: a hub and a managed cluster, each a control plane of its own, with `lanyard` on both, until it is told to stop. */
import { copyFileSync, writeFileSync } from 'node:fs'
import { sendTo, startAgent, startControlPlane, startHub } from '../index.ts'
import { cluster, demoPlace } from './place.ts'

const place = demoPlace()
const say = (text: string): boolean => process.stdout.write(`${text}\n`)
const stopped = new Promise<void>((resolve) => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve())
})

say('starting two control planes: the hub, and a cluster to be managed')
const [hub, managed] = await Promise.all([startControlPlane(), startControlPlane()])
copyFileSync(hub.kubeconfig, place.hub)
copyFileSync(managed.kubeconfig, place.managed)
say('starting lanyard hub, which installs its CRDs and webhooks')
await startHub(hub)
say(`starting lanyard agent on the managed cluster, with a bootstrap kubeconfig for the hub`)
await sendTo(managed, hub)
await startAgent(managed, cluster)
writeFileSync(place.ready, '')
say('ready')
// A timer keeps this process alive; its end takes everything along.
const alive = setInterval(() => {}, 60_000)
await stopped
clearInterval(alive)
await Promise.all([hub.stop(), managed.stop()])
