import { setTimeout as sleep } from 'node:timers/promises'
import type { TestContext } from 'node:test'
import { AppliedManifestWork, ManifestWork } from '../src/api/index.ts'
import {
  isConflict,
  Namespace,
  type Client,
  type Condition,
  type KubeObject,
  type Unstructured,
} from '../src/kube/index.ts'
import { Metrics } from '../src/runtime/index.ts'
import { runWorkAgent, type WorkAgentOptions } from '../src/work/agent/index.ts'
import { appliedName, hubHashOf } from '../src/work/contract.ts'
import type { ControlPlane } from './control-plane.ts'
import { eventually } from './eventually.ts'

/** A cluster with a running work agent, and the words that tests about it use. */
export interface WorkScene {
  readonly cluster: string
  readonly hub: Client
  readonly local: Client
  readonly metrics: Metrics
  create(name: string, manifests: unknown[], more?: Partial<ManifestWork['spec']>): Promise<ManifestWork>
  /** Changes the spec of a work. */
  change(name: string, change: (spec: ManifestWork['spec']) => ManifestWork['spec']): Promise<ManifestWork>
  work(name: string): Promise<ManifestWork | undefined>
  record(name: string): Promise<AppliedManifestWork | undefined>
  /** Waits until the agent has said that all is applied, of the latest generation. */
  applied(name: string, timeoutMs?: number): Promise<ManifestWork>
  /** Waits until it has said that something is not. */
  failed(name: string): Promise<ManifestWork>
  deleted(name: string): Promise<void>
  stop(): Promise<void>
  start(): void
}

export interface WorkSceneOptions extends Partial<Omit<WorkAgentOptions, 'hub' | 'local' | 'cluster'>> {
  hub: ControlPlane
  managed?: ControlPlane
  cluster: string
  userAgent?: string
  /** Who the agent is on the managed cluster; an administrator unless told. */
  localUser?: string
}

/** Starts an agent for a cluster whose namespace is made on the hub. Both CRDs must be there. */
export const startWorkScene = async (t: TestContext, options: WorkSceneOptions): Promise<WorkScene> => {
  const {
    hub: hubPlane,
    managed = hubPlane,
    cluster,
    userAgent = `work-agent-${cluster}`,
    localUser,
    ...rest
  } = options
  const [hub, local] = [hubPlane.client(), managed.client()]
  const identity = { user: 'work-agent', groups: ['system:masters'], userAgent }
  const agentHub = hubPlane.client(identity)
  const agentLocal = managed.client(localUser ? { user: localUser, userAgent } : identity)
  const metrics = new Metrics()
  await hub.of(Namespace).create({ metadata: { name: cluster } })
  const works = hub.of(ManifestWork, cluster)
  const hubServer = rest.hubServer ?? hubPlane.server
  let running: { stop: AbortController; ended: Promise<void> } | undefined

  const scene: WorkScene = {
    cluster,
    hub,
    local,
    metrics,
    create: (name, manifests, more = {}) =>
      works.create({
        metadata: { name, namespace: cluster },
        spec: { workload: { manifests: manifests as Unstructured[] }, ...more },
      }),
    change: async (name, change) => {
      for (;;) {
        const work = await works.get(name)
        try {
          return await works.update({ ...work, spec: change(work.spec) })
        } catch (error) {
          if (!isConflict(error)) throw error
        }
      }
    },
    work: (name) => works.find(name),
    record: (name) =>
      managed
        .client()
        .of(AppliedManifestWork)
        .find(appliedName(hubHashOf(hubServer), name)),
    applied: (name, timeoutMs = 30_000) => said(name, 'True', timeoutMs),
    failed: (name) => said(name, 'False', 30_000),
    deleted: (name) => eventually(async () => (await works.find(name)) === undefined).then(() => {}),
    start: () => {
      const stop = new AbortController()
      const ended = runWorkAgent(
        { ...rest, hub: agentHub, local: agentLocal, cluster, hubServer, metrics },
        stop.signal,
      )
      running = { stop, ended }
    },
    stop: async () => {
      running?.stop.abort()
      await running?.ended
      running = undefined
    },
  }
  const said = (name: string, status: string, timeoutMs: number): Promise<ManifestWork> =>
    eventually(
      async () => {
        const work = await works.get(name)
        const applied = work.status?.conditions?.find((c) => c.type === 'Applied')
        if (applied?.status !== status || applied.observedGeneration !== work.metadata.generation)
          throw new Error(`work ${name} says ${JSON.stringify(work.status?.conditions)}`)
        return work
      },
      { timeoutMs },
    )
  t.after(() => scene.stop())
  scene.start()
  return scene
}

/** What a work says about one of its manifests. */
export const manifestCondition = (work: ManifestWork, ordinal: number, type: string): Condition | undefined =>
  work.status?.resourceStatus?.manifests
    ?.find(({ resourceMeta }) => (resourceMeta.ordinal ?? 0) === ordinal)
    ?.conditions?.find((c) => c.type === type)

/** Manifests that tests deliver. */
export const manifest = {
  namespace: (name: string): KubeObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }),
  configMap: (namespace: string, name: string, data: Record<string, string> = { a: '1' }) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace },
    data,
  }),
  clusterRole: (name: string, verbs: string[] = ['get']) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name, labels: { 'test.lanyard.io/is': name } },
    rules: [{ apiGroups: [''], resources: ['pods'], verbs }],
  }),
  roleBinding: (namespace: string, name: string, role: string, user = 'ada') => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name, namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'User', name: user }],
  }),
}

/** Waits until nothing has been written for a while; for tests that then show that nothing is. */
export const quiet = async (plane: ControlPlane, userAgent: string): Promise<void> => {
  for (let before = -1; ;) {
    const { writes } = await plane.requestsBy(userAgent)
    if (writes === before) return
    before = writes
    await sleep(500)
  }
}
