/**
 * Runs pods without a kubelet: every pod of a control plane becomes processes of this machine.
 *
 *     const runner = await startRunner(plane)     // from now on Deployments, Jobs and CronJobs of the plane run
 *     runner.log('open-cluster-management', 'cluster-manager')
 *     await runner.stop()                         // ends the processes; the objects stay
 *
 * It is a scheduler, a kubelet and a kube-proxy in one; the real controllers of the plane do the rest (ReplicaSets, rollouts,
 * schedules, clean-up), so what runs here goes through what it goes through in the field.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigMap, isConflict, isNotFound, Secret, ServiceAccount, type Client } from '../../src/kube/index.ts'
import {
  Controller,
  Informers,
  silentLogger,
  systemClock,
  watching,
  type Clock,
  type Informer,
  type Logger,
  type ReconcileResult,
} from '../../src/runtime/index.ts'
import type { ControlPlane } from '../control-plane.ts'
import { keptFolder, removeKeptFolder } from '../keeper.ts'
import { EndpointSlice, Pod, Service } from './kinds.ts'
import { startNetwork } from './network.ts'
import { clusterAddress, presentNode, startNodeServer, type Subnet } from './node.ts'
import { PodLife } from './pod-life.ts'
import { ownPrograms, type Programs } from './programs.ts'
import { withRoleOfAccount } from './role-of-account.ts'

export { Deployment, Pod, Service } from './kinds.ts'

export interface RunnerOptions {
  /** What commands mean, beside `lanyard`: the last path element of a command to a program. */
  programs?: Programs
  /** Variables that every process gets. */
  env?: Readonly<Record<string, string>>
  /** The node's name in the cluster. */
  name?: string
  clock?: Clock
  log?: Logger
}

/** Starts to run the pods of a control plane; nothing of it outlives this process. */
export const startRunner = async (plane: ControlPlane, options: RunnerOptions = {}): Promise<Runner> => {
  const folder = keptFolder('runner')
  const server = await startNodeServer(folder, plane.serverCertificate())
  const runner = new Runner(plane, { ...options, folder, server })
  try {
    await runner.start()
    return runner
  } catch (error) {
    await runner.stop()
    throw error
  }
}

type Made = RunnerOptions & { folder: string; server: { subnet: Subnet; stop: () => void } }

/** A node of this machine; `stop` ends its processes and removes their files. */
export class Runner {
  readonly name: string
  readonly folder: string
  readonly #plane: ControlPlane
  readonly #client: Client
  readonly #options: Made
  readonly #pods: Informer<Pod>
  readonly #informers: Informers
  readonly #accounts: Informer<ServiceAccount>
  readonly #lives = new Map<string, { life: PodLife; address: string }>()
  readonly #over = new AbortController()
  readonly #around: ConstructorParameters<typeof PodLife>[2]
  #network: { stop: () => void } | undefined
  #work: Promise<unknown> = Promise.resolve()

  constructor(plane: ControlPlane, options: Made) {
    const { clock = systemClock, log = silentLogger, folder, env = {}, programs = {} } = options
    this.name = options.name ?? 'this-machine'
    this.folder = folder
    this.#plane = plane
    this.#options = options
    this.#client = plane.client({ user: 'lanyard-runner', groups: ['system:masters'], userAgent: 'lanyard-runner' })
    this.#informers = new Informers(this.#client, { log })
    this.#pods = this.#informers.of(Pod)
    this.#accounts = this.#informers.of(ServiceAccount)
    const secrets = this.#informers.of(Secret)
    const configMaps = this.#informers.of(ConfigMap)
    for (const informer of [secrets, configMaps]) informer.on(this.#onChange)
    this.#around = {
      client: this.#client,
      clock,
      log,
      folder,
      env,
      programs: { ...ownPrograms, ...programs },
      sources: {
        secret: (namespace, name) => secrets.get(`${namespace}/${name}`),
        configMap: (namespace, name) => configMaps.get(`${namespace}/${name}`),
      },
    }
  }

  /** `startRunner` has done it. */
  async start(): Promise<void> {
    const { signal } = this.#over
    const services = this.#informers.of(Service, {
      indexes: { ip: ({ spec }) => (spec.clusterIP ? [spec.clusterIP] : []) },
    })
    const slices = this.#informers.of(EndpointSlice, { indexes: { service: (slice) => [serviceOf(slice)] } })
    await presentNode(this.#client, this.name, this.#options.server.subnet.node)
    this.#network = await startNetwork(this.#plane.egressSocket, {
      serviceByIP: (ip) => services.by('ip', ip)[0],
      slicesOf: ({ metadata }) => slices.by('service', `${metadata.namespace}/${metadata.name}`),
    })
    const controller = new Controller({
      name: 'runner',
      reconcile: (key) => this.#reconcile(key),
      watches: [watching(this.#pods)],
      workers: 64, // one waits for as long as a pod takes to end
      queue: { maxDelayMs: 2000 },
      log: this.#around.log,
    })
    const follows = this.#informers.run(signal)
    await this.#informers.synced()
    this.#work = Promise.all([follows, controller.run(signal)])
  }

  /** Kills every process; the objects stay, and another runner takes them up. */
  async stop(): Promise<void> {
    this.#over.abort()
    await Promise.all([...this.#lives.values()].map(({ life }) => life.abandon()))
    await this.#work.catch(() => {})
    this.#network?.stop()
    this.#options.server.stop()
    removeKeptFolder(this.folder)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  /** What the containers of the pods whose names begin so have written; of all pods, where nothing is said. */
  log(namespace?: string, pods = ''): string {
    const folder = join(this.folder, 'logs')
    if (!existsSync(folder)) return ''
    const files = readdirSync(folder).filter(
      (file) => namespace === undefined || file.startsWith(`${namespace}_${pods}`),
    )
    return files.map((file) => `== ${file}\n${readFileSync(join(folder, file), 'utf8')}`).join('')
  }

  /** The processes of a pod. */
  pids(namespace: string, pod: string): number[] {
    return this.#lives.get(`${namespace}/${pod}`)?.life.pids ?? []
  }

  readonly #refresh = ({ metadata }: { metadata: { namespace?: string | undefined } }): void => {
    for (const [key, { life }] of this.#lives) if (key.startsWith(`${metadata.namespace}/`)) life.refresh()
  }
  readonly #onChange = { added: this.#refresh, updated: this.#refresh, deleted: this.#refresh }

  async #reconcile(key: string): Promise<ReconcileResult> {
    const pod = this.#pods.get(key)
    const known = this.#lives.get(key)
    if (known && known.life.uid !== pod?.metadata.uid) await this.#end(key, 0)
    if (!pod) return {}
    if (!pod.spec.nodeName) return this.#bind(pod)
    if (pod.spec.nodeName !== this.name) return {}
    this.#lives.get(key)?.life.update(pod)
    if (pod.metadata.deletionTimestamp) return this.#remove(key, pod)
    const over = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
    if (over) await this.#end(key, 0)
    else if (!this.#lives.has(key)) this.#begin(key, pod)
    return {}
  }

  /** There is one node, so this is all of the scheduler. */
  async #bind(pod: Pod): Promise<ReconcileResult> {
    if (pod.metadata.deletionTimestamp || (pod.spec.schedulerName ?? 'default-scheduler') !== 'default-scheduler')
      return {}
    const { name, namespace, uid } = pod.metadata
    const body = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name, namespace, uid },
      target: { apiVersion: 'v1', kind: 'Node', name: this.name },
    }
    await this.#client
      .of(Pod, namespace)
      .subresource(name!, 'binding', { method: 'POST', body })
      .catch((error: unknown) => {
        if (!isConflict(error) && !isNotFound(error)) throw error // bound or gone already: the watch will tell
      })
    return {}
  }

  #begin(key: string, bound: Pod): void {
    const address = this.#options.server.subnet.take()
    const account = this.#accounts.get(`${bound.metadata.namespace}/${bound.spec.serviceAccountName || 'default'}`)
    const pod = withRoleOfAccount(bound, account)
    const life = new PodLife(pod, { address, podIP: clusterAddress(address) }, this.#around)
    this.#lives.set(key, { life, address })
  }

  async #remove(key: string, pod: Pod): Promise<ReconcileResult> {
    const { name, namespace, uid, deletionGracePeriodSeconds = 30 } = pod.metadata
    await this.#end(key, deletionGracePeriodSeconds * 1000)
    await this.#client.of(Pod, namespace).delete(name!, { gracePeriodSeconds: 0, preconditions: { uid } })
    return {}
  }

  async #end(key: string, graceMs: number): Promise<void> {
    const known = this.#lives.get(key)
    if (!known) return
    await known.life.terminate(graceMs)
    this.#lives.delete(key)
    this.#options.server.subnet.release(known.address)
    rmSync(join(this.folder, 'pods', known.life.uid), { recursive: true, force: true })
  }
}

const serviceOf = ({ metadata }: EndpointSlice): string =>
  `${metadata.namespace}/${metadata.labels?.['kubernetes.io/service-name']}`
