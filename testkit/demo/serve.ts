/** The demo itself: a control plane with our CRDs and a controller at work, until it is told to stop. Started by up.ts. */
import { copyFileSync, writeFileSync } from 'node:fs'
import { crds, installCrds } from '../../src/api/index.ts'
import { clientFor, connectionFrom, loadKubeconfig } from '../../src/kube/index.ts'
import { clientMetrics, jsonLogger, Manager, Metrics } from '../../src/runtime/index.ts'
import { startControlPlane } from '../index.ts'
import { countClusterSets } from './cluster-sets.ts'
import { demoPlace, type Ready } from './place.ts'

const place = demoPlace()
const stop = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort())
const say = (text: string): boolean => process.stdout.write(`${text}\n`)

say('starting etcd, kube-apiserver and kube-controller-manager')
await using plane = await startControlPlane()
copyFileSync(plane.kubeconfig, place.kubeconfig)

const metrics = new Metrics()
const connection = connectionFrom(await loadKubeconfig({ path: place.kubeconfig, env: {} }))
const client = clientFor(connection, { userAgent: 'lanyard-demo', onAnswer: clientMetrics(metrics) })
const definitions = crds({ conversion: 'none' })
say(`installing ${definitions.length} CRDs`)
await installCrds(client, definitions)

say('starting the controllers')
const log = jsonLogger((line) => process.stderr.write(line))
const manager = new Manager({ client, metrics, log, health: { port: 0 } })
countClusterSets(manager, client)
manager.add({
  name: 'ready',
  run: async () => {
    const ready: Ready = { health: manager.healthAddress! }
    writeFileSync(place.ready, JSON.stringify(ready))
    say('ready')
  },
})
await manager.run(stop.signal)
client.close()
