import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { keeperVariable } from './keeper.ts'
import { plainEnvironment } from './paths.ts'
import { PortTaken } from './ports.ts'

/** How to run one program. */
export interface ComponentOptions {
  binary: string
  /** How it is called in messages, and its log in the folder; the program's own name unless told. */
  name?: string
  args: readonly string[]
  env?: Record<string, string>
  /** The kept folder it belongs to; its log is written there. */
  folder: string
  /** Whether it does its work; asked again and again after the start. */
  ready: () => Promise<boolean>
  readyWithinMs?: number
}

/** A program with a lifetime: it can be stopped, killed, paused and started again with the same arguments. */
export class Component {
  readonly name: string
  readonly #options: ComponentOptions
  #child: ChildProcess | undefined
  #ended: Promise<string> = Promise.resolve('never started')

  constructor(options: ComponentOptions) {
    this.name = options.name ?? basename(options.binary)
    this.#options = options
  }

  /** Undefined while it is not running. */
  get pid(): number | undefined {
    return this.running ? this.#child?.pid : undefined
  }

  get running(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null
  }

  /** Starts it and waits until it is ready. */
  async start(): Promise<void> {
    this.spawn()
    await this.ready()
  }

  /** Starts it and does not wait. */
  spawn(): void {
    if (this.running) throw new Error(`${this.name} is running already (pid ${this.pid})`)
    const { binary, args, env, folder } = this.#options
    const log = openSync(this.#logFile, 'a')
    const child = spawn(binary, args, {
      cwd: folder,
      env: { ...plainEnvironment(), ...env, [keeperVariable]: folder },
      stdio: ['ignore', log, log],
      detached: true, // Ctrl-C is for the test process; the keeper ends this one
    })
    closeSync(log)
    child.unref()
    this.#child = child
    this.#ended = new Promise((resolve) => {
      child.once('error', (error) => resolve(error.message))
      child.once('exit', (code, signal) => resolve(signal ? `ended by ${signal}` : `exit code ${code}`))
    })
  }

  /** Waits until it is ready; fails with the end of its log if it ends, or does not get there in time. */
  async ready(): Promise<void> {
    const { ready, readyWithinMs = 120_000 } = this.#options
    let ended: string | undefined
    void this.#ended.then((how) => (ended = how))
    const deadline = performance.now() + readyWithinMs
    while (!(await ready().catch(() => false))) {
      if (ended !== undefined) throw this.#failure(`did not start: ${ended}`)
      if (performance.now() > deadline) throw this.#failure(`not ready within ${readyWithinMs / 1000} s`)
      await sleep(50)
    }
    if (ended !== undefined) throw this.#failure(`did not start: ${ended}; another process answers on its port`)
  }

  /** SIGTERM; resolves when it has ended. One that does not end in a minute is killed, and that is an error. */
  async stop(): Promise<void> {
    if (!this.running) return
    this.resume() // a paused process cannot hear SIGTERM
    this.#child!.kill('SIGTERM')
    const timer = new AbortController()
    const late = sleep(60_000, 'late', { signal: timer.signal }).catch(() => 'ended')
    const outcome = await Promise.race([this.#end(), late])
    timer.abort()
    if (outcome !== 'late') return
    await this.kill()
    throw this.#failure('did not end within 60 s of SIGTERM')
  }

  /** SIGKILL; resolves when it has ended. */
  async kill(): Promise<void> {
    if (this.running) this.#child!.kill('SIGKILL')
    await this.#end()
  }

  /** SIGSTOP: it keeps its connections and answers nothing. */
  pause(): void {
    this.#child?.kill('SIGSTOP')
  }

  /** SIGCONT: it goes on where it was paused. */
  resume(): void {
    this.#child?.kill('SIGCONT')
  }

  /** Stops it if it is running, and starts it again with the same ports, data and certificates. */
  async restart(): Promise<void> {
    await this.stop()
    await this.start()
  }

  /** The end of what it wrote, for error messages. */
  log(lines = 20): string {
    if (!existsSync(this.#logFile)) return ''
    return readFileSync(this.#logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n')
  }

  get #logFile(): string {
    return join(this.#options.folder, `${this.name}.log`)
  }

  /** Waits for the end; only then does the child keep this process alive. */
  #end(): Promise<string> {
    this.#child?.ref()
    return this.#ended
  }

  #failure(what: string): Error {
    const log = this.log()
    const message = `${this.name} ${what}; the end of its log:\n${log || '(empty)'}`
    return /address already in use|EADDRINUSE|is already in use/.test(log) ? new PortTaken(message) : new Error(message)
  }
}
