import { setTimeout as pause } from 'node:timers/promises'
import { annotation, ManagedCluster } from '../src/api/index.ts'
import { inParallel, isTrue } from '../src/runtime/index.ts'
import { eksCluster, startLocalEks, startManagedPlane } from '../testkit/eks/index.ts'
import { eventually, sendTo, startAgent, startHub, type LanyardProcess } from '../testkit/index.ts'
import { builtProgram } from './built-program.ts'
import { median, progress, rounded, type Bench } from './measure.ts'

const clusters = 100
const quietSeconds = 60
const rounds = 3
/** A role and its policy; the entry is in `aws-auth`, and who we are is asked once. */
const mostCallsPerCluster = 2.1

/** Clusters on EKS: what accepting them costs in calls of AWS and in time, what nothing costs, and how long an agent takes to join. */
export const irsa: Bench = async (print) => {
  const program = builtProgram()
  progress('irsa: starting a hub on local EKS and a managed cluster')
  await using eks = await startLocalEks({ access: 'aws-auth', plane: { audit: false } })
  await using managed = await startManagedPlane(eksCluster('m0', '222222222222'))
  const approval = ['--feature-gates=ManagedClusterAutoApproval=true', '--auto-approved-arn-patterns=*']
  const args = [...eks.hubArgs, ...approval, '--no-webhooks', '--no-leader-elect']
  const hub = await startHub(eks.hub, { program, args, env: await eks.hubEnvironment() })
  const admin = eks.hub.client()
  const objects = admin.of(ManagedCluster)

  progress(`irsa: ${clusters} clusters`)
  const started = performance.now()
  await inParallel(
    16,
    Array.from({ length: clusters }, (_, i) => async () => {
      const arn = `arn:aws:eks:us-west-2:333333333333:cluster/b${i}`
      const annotations = { [annotation.eksManagedClusterArn]: arn }
      await objects.create({ metadata: { name: `b${i}`, annotations }, spec: { hubAcceptsClient: false } })
    }),
  )
  const all = (which: ManagedCluster[]): boolean =>
    which.filter((one) => isTrue(one, 'HubAcceptedManagedCluster')).length === clusters
  await eventually.watching(objects, all, { timeoutMs: 600_000 })
  const seconds = (performance.now() - started) / 1000
  const calls = await awsCallsOf(hub)

  progress(`irsa: ${calls} calls in ${seconds.toFixed(1)} s; watching the hub do nothing for ${quietSeconds} s`)
  await pause(quietSeconds * 1000)
  const idleCalls = (await awsCallsOf(hub)) - calls

  const joins: number[] = []
  for (let round = 0; round < rounds; round++) {
    progress(`irsa: join, round ${round + 1} of ${rounds}`)
    const name = `m${round}`
    const one = await eks.managed(name, { account: '222222222222', plane: managed, issuer: 'm0' })
    const namespace = `agent-${round}`
    await sendTo(managed, eks.hub, { namespace })
    const environment = await one.environment()
    const before = performance.now()
    const agent = await startAgent(managed, name, { namespace, program, args: one.args, env: environment })
    const joined = (which: ManagedCluster[]): boolean =>
      which.some((cluster) => cluster.metadata.name === name && isTrue(cluster, 'ManagedClusterJoined'))
    await eventually.watching(objects, joined, { timeoutMs: 120_000 })
    joins.push(performance.now() - before)
    await agent.process.stop()
  }
  const callsPerCluster = calls / clusters
  print({
    bench: 'irsa',
    clusters,
    ...rounded({
      awsCalls: calls,
      callsPerCluster,
      acceptSeconds: seconds,
      idleAwsCalls: idleCalls,
      joinMs: median(joins),
    }),
    target: `idleAwsCalls 0, callsPerCluster at most ${mostCallsPerCluster}`,
    ok: idleCalls === 0 && callsPerCluster <= mostCallsPerCluster,
  })
}

/** Calls of AWS that a hub has made, whatever came of them. */
const awsCallsOf = async (hub: LanyardProcess): Promise<number> =>
  (await hub.metrics())
    .split('\n')
    .filter((line) => line.startsWith('lanyard_aws_calls_total{'))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
