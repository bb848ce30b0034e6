import { AWSCluster, crds, installCrds } from '../src/api/index.ts'
import { inParallel } from '../src/runtime/index.ts'
import { allowing, awsAccount } from '../testkit/aws-account.ts'
import type { AwsFront } from '../testkit/aws-front.ts'
import { createCluster, roleIn } from '../testkit/aws-network.ts'
import { managementAccount } from '../testkit/identity-hub.ts'
import { eventually, startControlPlane } from '../testkit/index.ts'
import { startAwsHub, withLocalAws } from './aws-hub.ts'
import { metricOf, requestsOf } from './hub-figures.ts'
import { progress, rounded, type Bench } from './measure.ts'

const accounts = Array.from({ length: 10 }, (_, i) => String(400_000_000_000 + i))
/** Building looks once at all there is; a removal before, when the gateways are gone, and when nothing should be left. */
const most = { callsPerCluster: 1.3, removalCallsPerCluster: 1.8 }
const mostMB = 130
const restMs = 60_000

/** AWSClusters from their creation until all are built in the local AWS, a minute of rest, and their removal: what one costs. */
export const infrastructure: Bench = async (print) => {
  await withLocalAws(async (local) => {
    const front = await local.front()
    const account = (id: string) => awsAccount(local.aws, id)
    const may = allowing({ Action: ['sts:AssumeRole', 'sts:TagSession'], Resource: '*' })
    const keys = await account(managementAccount).user('capa', may)
    progress('infrastructure: starting a control plane and a hub')
    await using plane = await startControlPlane({ controllerManager: false, audit: false })
    await installCrds(plane.client(), crds({ conversion: 'none', borrowed: true }))
    const hub = await startAwsHub(plane, front, keys)
    const client = plane.client({ user: 'bench', groups: ['system:masters'] })
    const controllerArn = `arn:aws:iam::${managementAccount}:user/capa`
    const specs = await Promise.all(accounts.map((id) => roleIn({ client, account, controllerArn }, id)))
    const objects = client.of(AWSCluster)
    const patience = { timeoutMs: 600_000 }
    for (const clusters of [10, 50]) {
      const requests = await requestsOf(hub)
      progress(`infrastructure ${clusters}: building`)
      const names = Array.from({ length: clusters }, (_, i) => `team-${i % 10}/c${clusters}-${i}`)
      const built = await counted(front, async () => {
        await inParallel(
          16,
          names.map((name, i) => async () => {
            await createCluster(client, name, { spec: specs[i % accounts.length]! })
          }),
        )
        await eventually.watching(
          objects,
          (all: AWSCluster[]) => all.filter(({ status }) => status?.ready).length === clusters,
          patience,
        )
      })
      const { all: sent } = await requestsOf(hub)
      progress(`infrastructure ${clusters}: a minute of rest`)
      const rest = await counted(front, () => new Promise((done) => setTimeout(done, restMs)))
      const rssMB = (await metricOf(hub, 'process_resident_memory_bytes')) / 2 ** 20
      progress(`infrastructure ${clusters}: removing`)
      const removed = await counted(front, async () => {
        await inParallel(
          16,
          names.map((name) => async () => {
            const [namespace, own] = name.split('/') as [string, string]
            await client.of(AWSCluster, namespace).delete(own)
          }),
        )
        await eventually.watching(objects, (left: AWSCluster[]) => left.length === 0, patience)
      })
      const callsPerCluster = built.calls / clusters
      const removalCallsPerCluster = removed.calls / clusters
      const ratio = {
        callsPerCluster: built.calls / built.writes,
        removalCallsPerCluster: removed.calls / removed.writes,
      }
      print({
        bench: 'infrastructure',
        clusters,
        accounts: accounts.length,
        ...rounded({
          seconds: built.seconds,
          callsPerCluster,
          requestsPerCluster: (sent - requests.all) / clusters,
          idleCalls: rest.calls,
          removalSeconds: removed.seconds,
          removalCallsPerCluster,
          rssMB,
        }),
        baseline: rounded({
          callsPerCluster: built.writes / clusters,
          removalCallsPerCluster: removed.writes / clusters,
        }),
        ratio: rounded(ratio),
        target: `callsPerCluster at most ${most.callsPerCluster} and removalCallsPerCluster at most ${most.removalCallsPerCluster} of those that change something; idleCalls 0; rssMB at most ${mostMB}`,
        ok:
          ratio.callsPerCluster <= most.callsPerCluster &&
          ratio.removalCallsPerCluster <= most.removalCallsPerCluster &&
          rest.calls === 0 &&
          rssMB <= mostMB,
      })
    }
    await hub.process.stop()
  })
}

/** The calls of AWS while something is done; those that change something are the least that it could cost. */
const counted = async (
  front: AwsFront,
  run: () => Promise<void>,
): Promise<{ calls: number; writes: number; seconds: number }> => {
  const [before, started] = [front.calls.length, performance.now()]
  await run()
  const seconds = (performance.now() - started) / 1000
  const ours = front.calls.slice(before).filter(({ action }) => !/^(AssumeRole|GetCallerIdentity)/.test(action))
  return { calls: ours.length, writes: ours.filter(({ action }) => !action.startsWith('Describe')).length, seconds }
}
