import { spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname } from 'node:path'
import { keeperVariable } from '../keeper.ts'
import { plainEnvironment } from '../paths.ts'

/** How to run a container's program. */
export interface Launch {
  program: string
  args: readonly string[]
  env: Readonly<Record<string, string>>
  cwd: string
  logFile: string
  /** The kept folder whose end is this process's end too. */
  keeper: string
}

export interface Exit {
  exitCode: number
  signal?: number
  /** It could not be started at all. */
  problem?: string
}

/** A running program and its children, in a process group of their own. */
export interface Running {
  pid: number | undefined
  exited: Promise<Exit>
  kill(signal: 'SIGTERM' | 'SIGKILL'): void
}

export const launch = ({ program, args, env, cwd, logFile, keeper }: Launch): Running => {
  mkdirSync(dirname(logFile), { recursive: true })
  const log = openSync(logFile, 'a')
  const child = spawn(program, args, {
    cwd,
    env: { ...plainEnvironment(), HOME: cwd, ...env, [keeperVariable]: keeper },
    stdio: ['ignore', log, log],
    detached: true,
  })
  child.unref()
  const exited = new Promise<Exit>((resolve) => {
    child.once('error', (error) => {
      writeSync(log, `${error.message}\n`)
      resolve({ exitCode: 128, problem: error.message })
    })
    child.once('exit', (code, signal) => {
      const number = signal ? constants.signals[signal] : undefined
      resolve(number === undefined ? { exitCode: code ?? 0 } : { exitCode: 128 + number, signal: number })
    })
  })
  void exited.then(() => closeSync(log))
  return {
    pid: child.pid,
    exited,
    kill: (signal) => {
      if (child.pid === undefined) return
      try {
        process.kill(-child.pid, signal)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error // it has ended in the meantime
      }
    },
  }
}
