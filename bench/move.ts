import {
  AWSCluster,
  AWSClusterControllerIdentity,
  AWSClusterRoleIdentity,
  Cluster,
  crds,
  installCrds,
} from '../src/api/index.ts'
import { hubAt, moveBundle, MoveRefused, prepareMove, type Steps } from '../src/identities/move/index.ts'
import { Namespace, Secret, type Client } from '../src/kube/index.ts'
import { inParallel, systemClock } from '../src/runtime/index.ts'
import { createCluster } from '../testkit/aws-network.ts'
import { roleReference } from '../testkit/identity-hub.ts'
import { startControlPlane } from '../testkit/index.ts'
import { progress, rounded, type Bench } from './measure.ts'

const hubNamespace = 'lanyard-hub'
const accounts = 20
/** Requests that a cluster may cost beyond the fixed ones: tried, paused, made, freed and deleted for Cluster and AWSCluster, and a Secret. */
const mostPerCluster = 20
/** A move waits for its own waves, and reads in between. */
const leastRatio = 0.6

/** A namespace full of clusters from one management cluster to another, without controllers: what the command itself costs. */
export const move: Bench = (print) => moveOf([10, 200], print)

/** The same for other sizes. */
export const moveOf = async (sizes: number[], print: Parameters<Bench>[0]): Promise<void> => {
  progress('move: starting two control planes')
  const quiet = { controllerManager: false, audit: false }
  await using source = await startControlPlane(quiet)
  await using target = await startControlPlane(quiet)
  for (const plane of [source, target]) {
    await installCrds(plane.client(), crds({ conversion: 'none', borrowed: true }))
    await plane
      .client()
      .of(Namespace)
      .create({ metadata: { name: hubNamespace } })
  }
  const controller = { metadata: { name: 'default' }, spec: { allowedNamespaces: {} } }
  await source.client().of(AWSClusterControllerIdentity).create(controller)
  for (const clusters of sizes) print(await moving(clusters, source.client(), target.client()))
}

const moving = async (clusters: number, from: Client, to: Client) => {
  const namespace = `fleet-${clusters}`
  const requests = counted([from, to])
  const filling = performance.now()
  await fill(from, namespace, clusters)
  const raw = requests() / ((performance.now() - filling) / 1000)
  const before = requests()
  progress(`move ${clusters}: moving`)
  const { signal } = new AbortController()
  const started = performance.now()
  const [here, there] = await Promise.all([from, to].map((client) => hubAt(client, hubNamespace, signal)))
  const options = { keepAllowedNamespaces: false, defaultRegion: 'eu-west-1', checkAccount: false, signal }
  const { move: prepared, obstacles } = await prepareMove(here!, there!, namespace, options)
  if (obstacles.length > 0) throw new MoveRefused(obstacles)
  const preflightSeconds = (performance.now() - started) / 1000
  const steps: Steps = { clock: systemClock, step: (_, run) => run({ signal, seen: () => {} }) }
  await moveBundle(prepared, steps)
  const seconds = (performance.now() - started) / 1000
  const sent = requests() - before
  const arrived = (await to.of(AWSCluster, namespace).list({ metadataOnly: true })).items.length
  const left = (await from.of(Cluster, namespace).list({ metadataOnly: true })).items.length
  const perCluster = sent / clusters
  const ratio = sent / seconds / raw
  const isComplete = arrived === clusters && left === 0
  const isLarge = clusters >= 200
  return {
    bench: 'move',
    clusters,
    objects: prepared.bundle.items.length,
    requests: sent,
    ...rounded({ seconds, preflightSeconds, requestsPerCluster: perCluster, requestsPerSecond: sent / seconds }),
    baseline: rounded({ requestsPerSecond: raw }),
    ratio: rounded({ requestsPerSecond: ratio }),
    target: `all of them arrive; from 200 on at most ${mostPerCluster} requests each, at ${leastRatio} of the rate of who only creates them`,
    ok: isComplete && (!isLarge || (perCluster <= mostPerCluster && ratio >= leastRatio)),
  }
}

/** Clusters of twenty roles, each with a Secret of its own, as if a controller had been there. */
const fill = async (client: Client, namespace: string, clusters: number): Promise<void> => {
  progress(`move ${clusters}: creating them`)
  for (let i = 0; i < accounts; i++)
    await client.of(AWSClusterRoleIdentity).create({
      metadata: { name: `${namespace}-${i}` },
      spec: { allowedNamespaces: {}, roleARN: `arn:aws:iam::${300_000_000_000 + i}:role/capa` },
    })
  await client.of(Namespace).create({ metadata: { name: namespace } })
  await inParallel(
    16,
    Array.from({ length: clusters }, (_, i) => async () => {
      const identityRef = roleReference(`${namespace}-${i % accounts}`) as never
      await createCluster(client, `${namespace}/c${i}`, { spec: { identityRef } })
      const metadata = { namespace, name: `c${i}-kubeconfig` }
      await client.of(Secret, namespace).create({ metadata, stringData: { value: 'kubeconfig' } })
    }),
  )
}

const counted = (clients: readonly Client[]): (() => number) => {
  let requests = 0
  for (const client of clients) {
    const send = client.json.bind(client)
    client.json = (request) => {
      requests += 1
      return send(request)
    }
  }
  return () => requests
}
