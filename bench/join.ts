import { setTimeout as pause } from 'node:timers/promises'
import { ManagedCluster } from '../src/api/index.ts'
import { Namespace, Secret, type Client } from '../src/kube/index.ts'
import { isTrue } from '../src/runtime/index.ts'
import { allowBootstrap, eventually, sendTo, startAgent, startControlPlane, startHub } from '../testkit/index.ts'
import { startChild } from './child-process.ts'
import { builtProgram } from './built-program.ts'
import { metricOf } from './hub-figures.ts'
import { inTurn, median, progress, rounded, type Bench } from './measure.ts'

const rounds = 5
const mostTimes = 2.5
const mostMB = 85

/** One agent from the start of its process until it has joined, and what it holds when it has nothing to do. */
export const join: Bench = async (print) => {
  const program = builtProgram()
  progress('join: starting a hub and a managed cluster')
  await using plane = await startControlPlane({ audit: false })
  await using managed = await startControlPlane({ audit: false })
  const approval = ['--feature-gates=ManagedClusterAutoApproval=true', '--auto-approved-csr-users=bootstrap']
  await startHub(plane, { program, args: ['--no-webhooks', ...approval] })
  await allowBootstrap(plane, 'bootstrap')
  const kubeconfig = plane.kubeconfigFor({ user: 'bootstrap' })
  const admin = plane.client()

  const ours: number[] = []
  const bare: number[] = []
  const idle: number[] = []
  for (let round = 0; round < rounds; round++) {
    progress(`join: round ${round + 1} of ${rounds}`)
    const agentOnce = async (): Promise<number> => {
      const namespace = `agent-${round}`
      await managed
        .client()
        .of(Namespace)
        .create({ metadata: { name: namespace } })
      await sendTo(managed, plane, { namespace })
      const started = performance.now()
      const agent = await startAgent(managed, `ours-${round}`, { namespace, program })
      await hasJoined(admin, `ours-${round}`)
      const took = performance.now() - started
      await pause(5000)
      idle.push((await metricOf(agent, 'process_resident_memory_bytes')) / 2 ** 20)
      await agent.process.stop()
      await managed.client().of(Secret, namespace).deleteAll()
      return took
    }
    const rawOnce = async (): Promise<number> => {
      const started = performance.now()
      const child = startChild('join-raw.ts', { kubeconfig, name: `raw-${round}` })
      await hasJoined(admin, `raw-${round}`)
      const took = performance.now() - started
      await child.end()
      return took
    }
    const took = await inTurn(round, agentOnce, rawOnce)
    ours.push(took.ours)
    bare.push(took.baseline)
  }
  const times = median(ours) / median(bare)
  print({
    bench: 'join',
    rounds,
    ...rounded({ joinMs: median(ours), idleRssMB: median(idle) }),
    baseline: rounded({ joinMs: median(bare) }),
    ratio: rounded({ joinMs: times }).joinMs,
    target: `joinMs at most ${mostTimes} times the bare calls, idleRssMB at most ${mostMB}`,
    ok: times <= mostTimes && median(idle) <= mostMB,
  })
}

const hasJoined = (admin: Client, name: string): Promise<unknown> =>
  eventually.watching(
    admin.of(ManagedCluster),
    (clusters) => clusters.some((one) => one.metadata.name === name && isTrue(one, 'ManagedClusterJoined')),
    { timeoutMs: 60_000 },
  )
