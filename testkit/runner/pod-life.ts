import { once } from 'node:events'
import { join } from 'node:path'
import { isConflict, isNotFound, type Client } from '../../src/kube/index.ts'
import { equal, sleep, type Clock, type Logger } from '../../src/runtime/index.ts'
import { ContainerLife } from './container-life.ts'
import { ContainerRoot } from './container-root.ts'
import { environmentOf } from './environment.ts'
import { expand } from './expand.ts'
import { Pod, type Container, type ContainerStatus, type PodStatus } from './kinds.ts'
import { asStrategicPatch, podStatus } from './pod-status.ts'
import type { Launch } from './process.ts'
import { programOf, type Programs } from './programs.ts'
import { NotThereYet, type Sources } from './sources.ts'
import { PodTokens } from './tokens.ts'
import { Volumes } from './volumes.ts'

/** What the pods of one runner share. */
export interface PodSurroundings {
  client: Client
  clock: Clock
  log: Logger
  /** The kept folder of the runner. */
  folder: string
  programs: Programs
  /** Variables that every process gets, below its own. */
  env: Readonly<Record<string, string>>
  sources: Sources
}

/** Where a container's log is. */
export const logFileOf = (folder: string, pod: { namespace: string; name: string }, container: string): string =>
  join(folder, 'logs', `${pod.namespace}_${pod.name}_${container}.log`)

/** One pod that was given to this node: its volumes, its processes, and what is reported of them. */
export class PodLife {
  readonly uid: string
  /** Settles when nothing of it runs any more, and nothing will. */
  readonly ended: Promise<void>
  readonly #around: PodSurroundings
  readonly #address: string
  readonly #podIP: string
  readonly #folder: string
  readonly #volumes: Volumes
  readonly #tokens: PodTokens
  readonly #init: ContainerLife[]
  readonly #containers: ContainerLife[]
  readonly #over = new AbortController()
  readonly #isOver = once(this.#over.signal, 'abort')
  #pod: Pod
  #problem: string | undefined
  #reported: PodStatus
  #wake = Promise.withResolvers<void>()
  #dirty = false
  #abandoned = false
  #reporting: Promise<void> | undefined

  /** `address` is where its processes can listen; `podIP` is how the cluster calls that. */
  constructor(pod: Pod, at: { address: string; podIP: string }, around: PodSurroundings) {
    this.uid = pod.metadata.uid!
    this.#pod = pod
    this.#around = around
    this.#address = at.address
    this.#podIP = at.podIP
    this.#reported = pod.status ?? {}
    this.#folder = join(around.folder, 'pods', this.uid)
    this.#volumes = new Volumes(join(this.#folder, 'volumes'))
    this.#tokens = new PodTokens(around.client, around.clock)
    const { initContainers = [], containers, restartPolicy = 'Always' } = pod.spec
    const once = restartPolicy === 'Always' ? 'OnFailure' : restartPolicy // an init container ends
    this.#init = initContainers.map((one) => this.#life(one, once, pod.status?.initContainerStatuses))
    this.#containers = containers.map((one) => this.#life(one, restartPolicy, pod.status?.containerStatuses))
    this.ended = this.#run().catch((error: unknown) => {
      this.#around.log.error('a pod cannot run', { pod: pod.metadata.name, error })
      this.#problem = (error as Error).message
      this.#changed()
    })
  }

  /** The processes that run now. */
  get pids(): number[] {
    return [...this.#init, ...this.#containers].map(({ pid }) => pid).filter((pid) => pid !== undefined)
  }

  /** What the API server has now. */
  update(pod: Pod): void {
    this.#pod = { ...this.#pod, metadata: pod.metadata }
  }

  /** A Secret or ConfigMap of its namespace has changed. */
  refresh(): void {
    this.#wake.resolve()
    this.#wake = Promise.withResolvers()
  }

  /** Ends its processes at once and says nothing of it: whoever takes the pod up finds it as it was. */
  async abandon(): Promise<void> {
    this.#abandoned = true
    await this.terminate(0)
  }

  /** Ends its processes within their grace, and reports how they ended. */
  async terminate(graceMs: number): Promise<void> {
    this.#over.abort()
    await Promise.all([...this.#init, ...this.#containers].map((one) => one.stop(graceMs)))
    await this.ended
    await this.#reporting
  }

  async #run(): Promise<void> {
    this.#changed()
    if (!(await this.#mount())) return
    void this.#keepMounted()
    for (const one of this.#init) if ((await one.run()) !== 0) return
    if (!this.#over.signal.aborted) await Promise.all(this.#containers.map((one) => one.run()))
    this.#changed()
    this.#over.abort()
  }

  /** Until all that must be there is; false when the pod was ended meanwhile. */
  async #mount(): Promise<boolean> {
    const { signal } = this.#over
    while (!signal.aborted) {
      const { promise: changed } = this.#wake
      if (await this.#updateVolumes()) return true
      this.#changed()
      await Promise.race([changed, this.#isOver])
    }
    return false
  }

  /** Follows what its volumes show: Secrets and ConfigMaps that change, tokens that grow old. */
  async #keepMounted(): Promise<void> {
    const { signal } = this.#over
    const { clock } = this.#around
    while (!signal.aborted) {
      const { promise: changed } = this.#wake
      const due = this.#tokens.refreshAt
      const old = Promise.withResolvers<void>()
      const cancel = due === undefined ? () => {} : clock.after(Math.max(due - clock.now(), 1000), old.resolve)
      await Promise.race([changed, old.promise, this.#isOver])
      cancel()
      if (!signal.aborted) await this.#updateVolumes()
    }
  }

  async #updateVolumes(): Promise<boolean> {
    try {
      const pod = this.#pod
      const token = (of: Parameters<PodTokens['get']>[1]): Promise<string> => this.#tokens.get(pod, of)
      await this.#volumes.update({ pod, address: this.#address, sources: this.#around.sources, token })
      this.#problem = undefined
      return true
    } catch (error) {
      this.#problem = (error as Error).message
      if (error instanceof NotThereYet) return false
      this.#around.log.warn('a volume cannot be written; it is tried again', { pod: this.#pod.metadata.name, error })
      this.#around.clock.after(1000, () => this.refresh())
      return false
    }
  }

  #life(
    container: Container,
    restartPolicy: 'Always' | 'OnFailure' | 'Never',
    earlier: ContainerStatus[] | undefined,
  ): ContainerLife {
    const before = earlier?.find(({ name }) => name === container.name)
    let root: ContainerRoot | undefined
    return new ContainerLife({
      container,
      restartPolicy,
      address: this.#address,
      clock: this.#around.clock,
      restarts: before?.state.running || before?.state.terminated ? before.restartCount + 1 : 0,
      sourcesChanged: () => this.#wake.promise,
      changed: () => this.#changed(),
      prepare: () => {
        root ??= new ContainerRoot(join(this.#folder, container.name), container, (name) => this.#volumes.pathOf(name))
        return this.#launch(container, root)
      },
    })
  }

  #launch(container: Container, root: ContainerRoot): Launch {
    const pod = this.#pod
    const { client, env, folder, programs, sources } = this.#around
    const own = environmentOf(container, { pod, address: this.#address, sources })
    const server = new URL(client.connection.server)
    const words = [...(container.command ?? []), ...(container.args ?? [])].map((word) => root.map(expand(word, own)))
    const [program, ...args] = container.command?.length ? words : ['', ...words]
    return {
      program: programOf(programs, program!, container),
      args,
      env: {
        ...env,
        HOSTNAME: pod.metadata.name!,
        KUBERNETES_SERVICE_HOST: server.hostname,
        KUBERNETES_SERVICE_PORT: server.port,
        ...root.account,
        ...Object.fromEntries(Object.entries(own).map(([name, value]) => [name, root.map(value)])),
      },
      cwd: root.path,
      logFile: logFileOf(folder, { namespace: pod.metadata.namespace!, name: pod.metadata.name! }, container.name),
      keeper: folder,
    }
  }

  #changed(): void {
    this.#dirty = true
    this.#reporting ??= this.#report().finally(() => (this.#reporting = undefined))
  }

  /** One report at a time; what changes meanwhile is in the next. An API server that is away is waited for. */
  async #report(): Promise<void> {
    const { client, clock, log } = this.#around
    const { name, namespace, uid } = this.#pod.metadata
    while (this.#dirty && !this.#abandoned) {
      this.#dirty = false
      const status = this.#status()
      if (equal(status, this.#reported)) continue
      try {
        const body = { metadata: { uid }, status: asStrategicPatch(status) }
        await client.of(Pod, namespace).patch(name!, { strategic: body }, { subresource: 'status' })
        this.#reported = status
      } catch (error) {
        if (isNotFound(error) || isConflict(error)) return // it is gone, or another has taken its name
        log.warn('the status of a pod cannot be reported; it is tried again', { pod: name, error })
        this.#dirty = true
        await sleep(clock, 500)
      }
    }
  }

  #status(): PodStatus {
    const waiting = (status: ContainerStatus): ContainerStatus =>
      this.#problem && status.state.waiting
        ? { ...status, state: { waiting: { ...status.state.waiting, message: this.#problem } } }
        : status
    return podStatus({
      pod: this.#pod,
      before: this.#reported,
      initContainers: this.#init.map((one) => waiting(one.status)),
      containers: this.#containers.map((one) => waiting(one.status)),
      podIP: this.#podIP,
      now: this.#around.clock.now(),
    })
  }
}
