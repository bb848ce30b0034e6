import { once } from 'node:events'
import { sleep, timestamp, type Clock } from '../../src/runtime/index.ts'
import type { Container, ContainerState, ContainerStatus, PodSpec } from './kinds.ts'
import { follow } from './probes.ts'
import { launch, type Exit, type Launch, type Running } from './process.ts'
import { NotThereYet } from './sources.ts'

/** How long a container that keeps ending waits, as on any node: at once, then 10 s, doubling up to 5 minutes. */
export const backoffMs = (restarts: number): number =>
  restarts === 0 ? 0 : Math.min(10_000 * 2 ** (restarts - 1), 300_000)
/** Who ran for this long may begin anew. */
const forgivenAfterMs = 600_000

export interface ContainerLifeOptions {
  container: Container
  restartPolicy: NonNullable<PodSpec['restartPolicy']>
  address: string
  clock: Clock
  /** What to run; asked at every start, since Secrets may have changed. Throws `NotThereYet` while something is missing. */
  prepare: () => Launch
  /** Settles when something that `prepare` reads has changed. */
  sourcesChanged: () => Promise<void>
  /** The status has changed. */
  changed: () => void
  /** How often an earlier runner has started it. */
  restarts?: number
}

/** One container of a pod, from its first start to its last end. */
export class ContainerLife {
  readonly #options: ContainerLifeOptions
  readonly #stop = new AbortController()
  readonly #stopped = once(this.#stop.signal, 'abort')
  #state: ContainerState = { waiting: { reason: 'ContainerCreating' } }
  #lastState: ContainerState = {}
  #ready = false
  #restarts: number
  #running: Running | undefined

  constructor(options: ContainerLifeOptions) {
    this.#options = options
    this.#restarts = options.restarts ?? 0
  }

  get status(): ContainerStatus {
    const { name, image = '' } = this.#options.container
    const started = this.#state.running !== undefined
    return {
      name,
      image,
      imageID: '',
      ready: started && this.#ready,
      started,
      restartCount: this.#restarts,
      state: this.#state,
      lastState: this.#lastState,
    }
  }

  get pid(): number | undefined {
    return this.#state.running && this.#running?.pid
  }

  /** Runs it, again and again where the policy says so; settles with the exit code that is final. */
  async run(): Promise<number> {
    const { clock, restartPolicy } = this.#options
    const { signal } = this.#stop
    let quickEnds = 0
    for (;;) {
      const started = clock.now()
      const { exitCode, problem } = await this.#once(started)
      const over = signal.aborted || restartPolicy === 'Never' || (restartPolicy === 'OnFailure' && exitCode === 0)
      if (over) return exitCode
      quickEnds = clock.now() - started > forgivenAfterMs ? 0 : quickEnds
      const waitMs = backoffMs(quickEnds++)
      if (waitMs > 0) {
        const message = problem ?? `back-off ${waitMs / 1000}s restarting failed container=${this.status.name}`
        const ended = this.#state
        this.#become({ waiting: { reason: 'CrashLoopBackOff', message } })
        await sleep(clock, waitMs, signal).catch(() => {})
        if (signal.aborted) {
          this.#become(ended)
          return exitCode
        }
      }
      this.#restarts++
    }
  }

  /** SIGTERM, and SIGKILL to those that still run after their grace. Settles when it has ended. */
  async stop(graceMs: number): Promise<void> {
    this.#stop.abort()
    const running = this.#running
    if (!running) return
    running.kill(graceMs > 0 ? 'SIGTERM' : 'SIGKILL')
    const cancel = this.#options.clock.after(graceMs, () => running.kill('SIGKILL'))
    await running.exited
    running.kill('SIGKILL') // children that it left
    cancel()
  }

  async #once(startedAt: number): Promise<Exit> {
    const prepared = await this.#prepared()
    if (!prepared) return { exitCode: 137 } // stopped before it ran
    const running = (this.#running = launch(prepared))
    this.#ready = this.#options.container.readinessProbe === undefined
    this.#become({ running: { startedAt: timestamp(startedAt) } })
    const over = new AbortController()
    this.#probe(running, prepared, over.signal)
    const exit = await running.exited
    over.abort()
    this.#running = undefined
    this.#ready = false
    const terminated = {
      exitCode: exit.exitCode,
      ...(exit.signal !== undefined && { signal: exit.signal }),
      ...(exit.problem !== undefined && { message: exit.problem }),
      reason: exit.problem ? 'StartError' : exit.exitCode === 0 ? 'Completed' : 'Error',
      startedAt: timestamp(startedAt),
      finishedAt: timestamp(this.#options.clock.now()),
    }
    this.#lastState = { terminated }
    this.#become({ terminated })
    return exit
  }

  /** Undefined when it was stopped while it waited. */
  async #prepared(): Promise<Launch | undefined> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      const changed = this.#options.sourcesChanged()
      try {
        return this.#options.prepare()
      } catch (error) {
        if (!(error instanceof NotThereYet)) throw error
        this.#become({ waiting: { reason: 'CreateContainerConfigError', message: error.message } })
      }
      await Promise.race([changed, this.#stopped])
    }
    return undefined
  }

  #probe(running: Running, { env }: Launch, signal: AbortSignal): void {
    const { container, address, clock } = this.#options
    const target = { container, address, env }
    if (container.readinessProbe)
      void follow(container.readinessProbe, target, {
        clock,
        signal,
        changed: (good) => {
          this.#ready = good
          this.#options.changed()
        },
      })
    // One that has never been alive is left to its readiness: a slow start is not a death.
    if (container.livenessProbe)
      void follow(container.livenessProbe, target, {
        clock,
        signal,
        changed: (good) => good || running.kill('SIGKILL'),
      })
  }

  #become(state: ContainerState): void {
    this.#state = state
    this.#options.changed()
  }
}
