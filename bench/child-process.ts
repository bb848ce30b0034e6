import { spawn, type ChildProcess } from 'node:child_process'
import { builtFile } from './built-program.ts'
import type { Figures } from './measure.ts'

export interface ChildOptions {
  /** Flags of Node. */
  flags?: readonly string[]
}

/** A fresh Node process that is measured: it reports by IPC, and is told when to go on. */
export class Child {
  readonly #name: string
  readonly #process: ChildProcess
  readonly #ended: Promise<string>

  constructor(name: string, args: readonly string[], { flags = [] }: ChildOptions = {}) {
    this.#name = name
    this.#process = spawn(process.execPath, [...flags, ...args], {
      // Nothing of ours may change how it behaves, such as NODE_OPTIONS.
      env: { PATH: process.env['PATH'] },
      stdio: ['ignore', 2, 2, 'ipc'], // stdout is for the lines
    })
    this.#ended = new Promise((resolve) => {
      this.#process.once('error', (error) => resolve(error.message))
      this.#process.once('exit', (code, signal) => resolve(`exit code ${code ?? signal}`))
    })
  }

  /** What it reports next; a process that says nothing for two minutes is ended. */
  async report<T = Figures>(): Promise<T> {
    const reported = new Promise<T>((resolve) => this.#process.once('message', (message) => resolve(message as T)))
    const ended = this.#ended.then((how): never => {
      throw new Error(`${this.#name} ended (${how}) before it had reported; its own words are above`)
    })
    const limit = setTimeout(() => this.#process.kill(), 120_000)
    return Promise.race([reported, ended]).finally(() => clearTimeout(limit))
  }

  /** Lets it go on, and hands back what it reports then. */
  async ask<T = Figures>(say: object = {}): Promise<T> {
    const answer = this.report<T>()
    this.#process.send(say)
    return answer
  }

  /** It leaves by itself when the channel closes, and writes its compile cache; a kill would lose that. */
  async end(): Promise<void> {
    if (this.#process.connected) this.#process.disconnect()
    await this.#ended
  }
}

/** Starts a script of children/ as it would ship, with the settings as its only argument. */
export const startChild = (script: string, settings: object, options: ChildOptions = {}): Child => {
  const file = builtFile(`bench/children/${script.replace(/\.ts$/, '.js')}`)
  return new Child(script, [file, JSON.stringify(settings)], options)
}
