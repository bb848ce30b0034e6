/** The program as a process: the only file of the command line that touches `process`. */
import { enableCompileCache } from 'node:module'
import { basename } from 'node:path'
import type { Clock } from '../runtime/index.ts'

enableCompileCache()

// As ../runtime has it; importing that here would cost every `--help` the controllers.
const clock: Clock = {
  now: Date.now,
  after: (ms, run) => {
    const timer = setTimeout(run, Math.min(ms, 2 ** 31 - 1))
    return () => clearTimeout(timer)
  },
}

let interrupted: AbortController | undefined

/** From the first time it is asked for, the first SIGINT or SIGTERM ends the command gracefully and the second one at once. */
const signal = (): AbortSignal => {
  if (interrupted) return interrupted.signal
  const stop = new AbortController()
  interrupted = stop
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(130)
      stop.abort(new Error(name))
    })
  return stop.signal
}

// A reader such as `head` that has seen enough is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

const { run } = await import('./run.ts')
const names = ['lanyard', 'clusteradm', 'clusterctl']
const called = basename(process.argv[1] ?? '')
process.exitCode = await run({
  program: names.includes(called) ? called : 'lanyard',
  args: process.argv.slice(2),
  env: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  clock,
  get signal() {
    return signal()
  },
})
