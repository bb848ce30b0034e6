import { setTimeout as pause } from 'node:timers/promises'
import { ManagedCluster, ManifestWork } from '../src/api/index.ts'
import { Secret, type Client } from '../src/kube/index.ts'
import { inParallel, isTrue } from '../src/runtime/index.ts'
import { issue } from '../src/runtime/pki/index.ts'
import {
  allowBootstrap,
  eventually,
  freePort,
  startControlPlane,
  startHub,
  type ControlPlane,
} from '../testkit/index.ts'
import { builtProgram } from './built-program.ts'
import { startChild } from './child-process.ts'
import { metricOf, requestsOf } from './hub-figures.ts'
import { inTurn, median, progress, rounded, type Bench, type Line } from './measure.ts'

const subscribers = 1000
const each = 10
const rounds = 5
/** Above what creating the works takes by itself: the last of them has to arrive as well. */
const mostLagMs = 2000
const mostKBPerSubscriber = 150
const mostJoinTimes = 1.5

/** Works for many clusters over the gRPC endpoint, and a join over it beside one with csr. */
export const grpc: Bench = async (print) => {
  const program = builtProgram()
  const port = await freePort()
  const server = `https://127.0.0.1:${port}`
  await using plane = await startControlPlane({ audit: false })
  progress('grpc: starting a hub')
  const hub = await startHub(plane, {
    program,
    args: [
      '--no-webhooks',
      '--no-leader-elect',
      '--registration-drivers=csr,grpc',
      '--grpc-host=127.0.0.1',
      `--grpc-port=${port}`,
      '--grpc-names=127.0.0.1',
      '--feature-gates=ManagedClusterAutoApproval=true',
      '--auto-approved-csr-users=bootstrap',
      '--auto-approved-grpc-users=bootstrap',
    ],
  })
  const admin = plane.client()
  const authority = await authorityOf(admin)
  print(await joins(plane, admin, server, authority))

  const clusters = Array.from({ length: subscribers }, (_, i) => `cluster-${i}`)
  progress(`grpc: accepting ${subscribers} clusters`)
  await inParallel(
    16,
    clusters.map((name) => async () => {
      await admin.of(ManagedCluster).create({ metadata: { name }, spec: { hubAcceptsClient: true } })
    }),
  )
  const isAccepted = (one: ManagedCluster): boolean => isTrue(one, 'HubAcceptedManagedCluster')
  await eventually(
    async () =>
      (await admin.of(ManagedCluster).list({ resourceVersion: '0' })).items.filter(isAccepted).length >= subscribers,
    { timeoutMs: 300_000 },
  )
  await pause(5000) // taints and leases
  const figures = async () => ({
    rssMB: (await metricOf(hub, 'process_resident_memory_bytes')) / 2 ** 20,
    cpuMs: (await metricOf(hub, 'process_cpu_seconds_total')) * 1000,
    requests: (await requestsOf(hub)).all,
  })
  const before = await figures()
  progress(`grpc: ${subscribers} subscribers`)
  const child = startChild('grpc-subscribers.ts', { server, authority, clusters, each })
  await child.report()
  await pause(5000)
  const subscribed = await figures()

  progress(`grpc: ${subscribers * each} works`)
  await child.ask()
  const delivered = child.report<{ delivered: number; lastAt: number }>()
  const started = Date.now()
  await inParallel(
    32,
    clusters.flatMap((namespace) =>
      Array.from({ length: each }, (_, i) => async () => {
        const manifests = [
          {
            apiVersion: 'v1',
            kind: 'ConfigMap',
            metadata: { name: `cm-${i}`, namespace: 'default' },
            data: { text: 'x'.repeat(500) },
          },
        ]
        await admin
          .of(ManifestWork, namespace)
          .create({ metadata: { name: `work-${i}`, namespace }, spec: { workload: { manifests } } })
      }),
    ),
  )
  const createdMs = Date.now() - started
  const { lastAt } = await delivered
  const after = await figures()
  await pause(30_000)
  const idle = await figures()
  await child.end()
  const result = rounded({
    createdMs,
    deliveredMs: lastAt - started,
    lagMs: lastAt - started - createdMs,
    kbPerSubscriber: ((subscribed.rssMB - before.rssMB) * 1024) / subscribers,
    cpuMsPerSubscription: (subscribed.cpuMs - before.cpuMs) / subscribers,
    cpuMsPerWork: (after.cpuMs - subscribed.cpuMs) / (subscribers * each),
    requestsPerSubscription: (subscribed.requests - before.requests) / subscribers,
    requestsForWorks: after.requests - subscribed.requests,
    idleCpuMsPerSubscriberMinute: ((idle.cpuMs - after.cpuMs) * 2) / subscribers,
    hubRssMB: idle.rssMB,
  })
  print({
    bench: 'grpc.deliver',
    subscribers,
    works: subscribers * each,
    ...result,
    target: `lagMs at most ${mostLagMs}, kbPerSubscriber at most ${mostKBPerSubscriber}, one question to the API server for a subscription and none for its works`,
    ok:
      result['lagMs']! <= mostLagMs &&
      result['kbPerSubscriber']! <= mostKBPerSubscriber &&
      result['requestsPerSubscription']! <= 1.1,
  })
}

/** The endpoint's own authority: the subscribers of the benchmark need not ask for certificates one by one. */
const authorityOf = async (admin: Client): Promise<{ cert: string; key: string }> => {
  const secrets = admin.of(Secret, 'open-cluster-management-hub')
  const { data } = await eventually(() => secrets.get('lanyard-grpc'), { timeoutMs: 60_000 })
  const text = (key: string): string => Buffer.from(data![key]!, 'base64').toString('utf8')
  return { cert: text('ca.crt'), key: text('ca.key') }
}

const joins = async (
  plane: ControlPlane,
  admin: Client,
  server: string,
  authority: { cert: string; key: string },
): Promise<Line> => {
  await allowBootstrap(plane, 'bootstrap')
  const kubeconfig = plane.kubeconfigFor({ user: 'bootstrap' })
  const bootstrap = issue(authority, {
    commonName: 'bootstrap',
    usages: ['client'],
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 3_600_000),
  })
  const timed = async (script: string, settings: { name: string; [more: string]: unknown }): Promise<number> => {
    const started = performance.now()
    const child = startChild(script, settings)
    await eventually.watching(
      admin.of(ManagedCluster),
      (all) => all.some((one) => one.metadata.name === settings.name && isTrue(one, 'ManagedClusterJoined')),
      { timeoutMs: 60_000 },
    )
    const took = performance.now() - started
    await child.end()
    return took
  }
  const ours: number[] = []
  const csr: number[] = []
  for (let round = 0; round < rounds; round++) {
    progress(`grpc: join ${round + 1} of ${rounds}`)
    const overGrpc = { server, ca: authority.cert, bootstrap, name: `grpc-${round}` }
    const took = await inTurn(
      round,
      () => timed('join-grpc-raw.ts', overGrpc),
      () => timed('join-raw.ts', { kubeconfig, name: `csr-${round}` }),
    )
    ours.push(took.ours)
    csr.push(took.baseline)
  }
  const times = median(ours) / median(csr)
  return {
    bench: 'grpc.join',
    rounds,
    ...rounded({ joinMs: median(ours) }),
    baseline: rounded({ joinMs: median(csr) }),
    ratio: rounded({ joinMs: times }).joinMs,
    target: `the bare calls of a join take at most ${mostJoinTimes} times those with csr`,
    ok: times <= mostJoinTimes,
  }
}
