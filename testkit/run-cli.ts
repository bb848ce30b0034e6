import { Readable } from 'node:stream'
import type { Host } from '../src/cli/command.ts'
import { run } from '../src/cli/run.ts'
import { systemClock, type Clock } from '../src/runtime/clock.ts'

export interface CliOptions {
  program?: string
  env?: NodeJS.ProcessEnv
  /** What is piped in, or typed when `tty` is on. */
  stdin?: string
  tty?: boolean
  clock?: Clock
  signal?: AbortSignal
  /** Sees what goes to stderr as it does. */
  onErr?: (text: string) => unknown
}

/** How a command ended, and what it printed where. */
export interface CliResult {
  code: number
  out: string
  err: string
}

/** Runs a command of the program in this process, as `lanyard` does: the words of the command line, and what it has of a process. */
export const runCli = async (args: readonly string[], options: CliOptions = {}): Promise<CliResult> => {
  let out = ''
  let err = ''
  const { program = 'clusteradm', env = {}, stdin = '', tty = false, clock = systemClock } = options
  const host: Host = {
    program,
    args,
    env: { HOME: '/nonexistent', ...env },
    stdin: Object.assign(Readable.from(stdin ? [Buffer.from(stdin)] : []), { isTTY: tty }),
    stdout: { write: (text) => void (out += text), isTTY: tty },
    stderr: {
      write: (text) => {
        err += text
        options.onErr?.(text)
      },
      isTTY: tty,
    },
    clock,
    signal: options.signal ?? new AbortController().signal,
  }
  const code = await run(host)
  return { code, out, err }
}
