import { AWSCluster, AWSClusterRoleIdentity } from '../src/api/index.ts'
import { awsClient, CredentialCache, fromKeys, type Credentials, type Recipe } from '../src/aws/index.ts'
import type { Client } from '../src/kube/index.ts'
import { inParallel, Informer } from '../src/runtime/index.ts'
import { allowing, awsAccount } from '../testkit/aws-account.ts'
import type { AwsFront } from '../testkit/aws-front.ts'
import {
  createAwsCluster,
  isReady,
  managementAccount,
  namespace,
  roleReference,
  standing,
  trusting,
} from '../testkit/identity-hub.ts'
import { manualClock, startControlPlane } from '../testkit/index.ts'
import { startAwsHub, withLocalAws } from './aws-hub.ts'
import { metricOf } from './hub-figures.ts'
import { progress, rounded, type Bench } from './measure.ts'

const accounts = Array.from({ length: 20 }, (_, i) => String(300_000_000_000 + i))
const mostMB = 130
const mostLookupUs = 20

/** Many AWSClusters in twenty accounts, from the start of a hub until all have their credentials; then a lookup, and an idle hour. */
export const identities: Bench = (print) => identitiesOf([200, 2000], print)

/** The same for other sizes. */
export const identitiesOf = async (sizes: number[], print: Parameters<Bench>[0]): Promise<void> => {
  await withLocalAws(async ({ aws, front }) => {
    const may = allowing({ Action: 'sts:AssumeRole', Resource: '*' })
    const keys = await awsAccount(aws, managementAccount).user('capa', may)
    const trust = trusting(`arn:aws:iam::${managementAccount}:user/capa`)
    for (const id of accounts) await awsAccount(aws, id).role('capa', trust)
    for (const clusters of sizes) print(await startUp(clusters, keys, await front()))
    print(await lookups(keys, await front()))
  })
}

const startUp = async (clusters: number, keys: Credentials, front: AwsFront) => {
  progress(`identities ${clusters}: starting a control plane`)
  await using plane = await startControlPlane({ controllerManager: false, audit: false })
  const hub = await startAwsHub(plane, front, keys)
  await hub.process.stop()
  const admin = plane.client({ user: 'bench', groups: ['system:masters'] })
  for (const id of accounts)
    await admin.of(AWSClusterRoleIdentity).create({
      metadata: { name: `a${id}` },
      spec: { allowedNamespaces: {}, roleARN: `arn:aws:iam::${id}:role/capa` },
    })
  for (let i = 0; i < 20; i++) await namespace(admin, `team-${i}`)
  progress(`identities ${clusters}: creating them while no hub runs`)
  await inParallel(
    32,
    Array.from({ length: clusters }, (_, i) => async () => {
      await createAwsCluster(admin, `team-${i % 20}/c${i}`, { identity: roleReference(`a${accounts[i % 20]!}`) })
    }),
  )
  const before = front.calls.length
  const started = performance.now()
  const ready = allReady(admin, clusters)
  await hub.process.start()
  await ready
  const seconds = (performance.now() - started) / 1000
  const stsCalls = front.calls.length - before
  const rssMB = (await metricOf(hub, 'process_resident_memory_bytes')) / 2 ** 20
  await hub.process.stop()
  return {
    bench: 'identities.start',
    clusters,
    accounts: accounts.length,
    stsCalls,
    ...rounded({ seconds, perSecond: clusters / seconds, rssMB }),
    target: `stsCalls ${accounts.length}, one for each recipe; rssMB at most ${mostMB}`,
    ok: stsCalls === accounts.length && rssMB <= mostMB,
  }
}

const allReady = async (client: Client, clusters: number): Promise<void> => {
  const informer = new Informer({ client, resource: AWSCluster })
  const end = new AbortController()
  const ready = new Set<string>()
  const { promise, resolve } = Promise.withResolvers<void>()
  const look = (cluster: AWSCluster): void => {
    if (standing(cluster) === isReady(cluster.spec?.accountID ?? ''))
      ready.add(`${cluster.metadata.namespace}/${cluster.metadata.name}`)
    if (ready.size === clusters) resolve()
  }
  informer.on({ added: look, updated: look })
  const running = informer.run(end.signal)
  await promise
  end.abort()
  await running
}

/** What a controller pays before each call to AWS, and what STS is asked in an hour when all of them go on asking. */
const lookups = async (keys: Credentials, front: AwsFront) => {
  progress('identities: lookups, and an hour of them')
  const clock = manualClock(Date.now())
  front.clock = clock
  const aws = awsClient({ endpoints: { all: front.endpoint } })
  const never = () => Promise.reject(new Error('not used here'))
  const cache = new CredentialCache({ aws, controller: fromKeys(keys), secret: never, token: never, clock })
  const recipes = accounts.map((id): Recipe => ({
    kind: 'role',
    source: { kind: 'controller' },
    role: { arn: `arn:aws:iam::${id}:role/capa`, sessionName: 'bench', durationSeconds: 3600, region: 'eu-west-1' },
  }))
  await Promise.all(recipes.map((recipe) => cache.get(recipe)))
  const rounds = 5000
  const started = performance.now()
  for (let i = 0; i < rounds; i++) for (const recipe of recipes) await cache.get(recipe)
  const lookupUs = ((performance.now() - started) * 1000) / (rounds * recipes.length)
  const before = front.calls.length
  const hours = 10
  for (let minute = 0; minute < hours * 60; minute++) {
    clock.advance(60_000)
    await Promise.all(recipes.map((recipe) => cache.get(recipe)))
  }
  const idleCallsPerHour = (front.calls.length - before) / hours
  cache.close()
  aws.close()
  // A session of an hour has to be renewed before it ends; nine tenths of it can be used.
  const minimumPerHour = recipes.length
  return {
    bench: 'identities.lookup',
    recipes: recipes.length,
    ...rounded({ lookupUs, idleCallsPerHour }),
    baseline: { callsPerHour: minimumPerHour },
    target: `lookupUs at most ${mostLookupUs}; idleCallsPerHour at most 1.2 of one an hour for each recipe`,
    ok: lookupUs <= mostLookupUs && idleCallsPerHour <= 1.2 * minimumPerHour,
  }
}
