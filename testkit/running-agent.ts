import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { label, type ManagedCluster } from '../src/api/index.ts'
import { CertificateSigningRequest, Secret, type Client } from '../src/kube/index.ts'
import { newAgent, type Agent, type AgentOptions } from '../src/registration/agent/index.ts'
import { Joined, secretName } from '../src/registration/contract.ts'
import { csrAgentDriver } from '../src/registration/drivers/csr/agent.ts'
import { isTrue } from '../src/runtime/conditions.ts'
import { jsonLogger } from '../src/runtime/log.ts'
import { eventually } from './eventually.ts'
import { jumpingClock, type JumpingClock } from './jumping-clock.ts'
import { writeBootstrap, type StandInHub } from './stand-in-hub.ts'

/** An agent at work in this process, and what a test wants to know of it. Its namespace is `agent-<cluster>`. */
export interface RunningAgent {
  readonly agent: Agent
  readonly clock: JumpingClock
  /** All that it logged. */
  readonly lines: readonly string[]
  stop(): Promise<void>
  /** Waits until it is joined and waits for nothing. */
  ready(): Promise<void>
  /** Waits until it says that it waits for this. */
  waitsFor(what: RegExp): Promise<void>
  /** What is in the hub secret. */
  secret(): Promise<Record<string, string>>
}

/** Starts an agent that ends with the test. */
export const startAgent = (
  t: TestContext,
  local: Client,
  cluster: string,
  options: Partial<AgentOptions> = {},
): RunningAgent => {
  const lines: string[] = []
  const clock = jumpingClock()
  const namespace = `agent-${cluster}`
  const log = jsonLogger((line) => lines.push(line))
  const shared = { local, namespace, clusterName: cluster, driver: csrAgentDriver(), log, clock }
  const agent = newAgent({ ...shared, userAgent: `agent-of-${cluster}`, ...options })
  const ending = new AbortController()
  const running = agent.run(ending.signal)
  const stop = async (): Promise<void> => {
    ending.abort()
    await running
  }
  t.after(stop)
  return {
    agent,
    clock,
    lines,
    stop,
    ready: () => eventually(() => assert.deepEqual([agent.phase, ...agent.unready()], ['joined'])),
    waitsFor: (what) => eventually(() => assert.match(agent.waitingFor()?.what ?? 'nothing', what)),
    secret: async () => {
      const { data = {} } = await local.of(Secret, namespace).get(secretName.hub)
      const entries = Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()])
      return Object.fromEntries(entries) as Record<string, string>
    },
  }
}

/** Puts a bootstrap kubeconfig for the hub, or the given one, where the agent of a cluster looks for it. */
export const bootstrapFor = async (
  local: Client,
  cluster: string,
  hub: StandInHub | string,
  name: string = secretName.bootstrap,
): Promise<void> => {
  const kubeconfig = typeof hub === 'string' ? hub : await hub.bootstrapKubeconfig()
  await writeBootstrap(local, `agent-${cluster}`, name, kubeconfig)
}

/** Waits until the hub shows the cluster as joined. */
export const joined = (hub: StandInHub, name: string): Promise<ManagedCluster> =>
  eventually(async () => {
    const cluster = await hub.cluster(name)
    assert.ok(cluster && isTrue(cluster, Joined.type), JSON.stringify(cluster?.status))
    return cluster
  })

/** All certificate requests of a cluster. */
export const csrsOf = async (hub: StandInHub, cluster: string): Promise<CertificateSigningRequest[]> =>
  (await hub.client.of(CertificateSigningRequest).list({ labelSelector: `${label.clusterName}=${cluster}` })).items
