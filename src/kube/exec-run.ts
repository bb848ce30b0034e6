import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { isAbsolute } from 'node:path'
import { codeOf, quoted } from './kubeconfig-error.ts'
import type { Environment } from './kubeconfig.ts'

export interface PluginRun {
  command: string
  args: readonly string[]
  env: Environment
  /** The person at the terminal may be asked: the plug-in gets our stdin and stderr. */
  interactive: boolean
  timeoutMs: number
  signal: AbortSignal
}

/** How a run ended: with output, or with a problem that can be shown. */
export type PluginOutcome = { stdout: string } | { problem: string; missing?: boolean }

const maxOutput = 1 << 20
const keptStderr = 8192

// A process in a group of its own does not end with ours. One listener for all: Node warns of a leak when there are more than ten.
const running = new Set<() => void>()
const killAll = (): void => running.forEach((kill) => kill())

/** Runs a plug-in to its end. Its stdout may hold secrets and is never part of a problem; the end of its stderr is. */
export const runPlugin = (run: PluginRun): Promise<PluginOutcome> =>
  new Promise((resolve, reject) => {
    run.signal.throwIfAborted()
    // A group of its own lets us end what the plug-in starts, too. But a process in another session has no terminal to ask
    // a person at, so an interactive one stays in ours.
    const ownGroup = !run.interactive && process.platform !== 'win32'
    let child: ChildProcess
    try {
      child = spawn(run.command, run.args, {
        env: { ...run.env },
        detached: ownGroup,
        windowsHide: true,
        stdio: run.interactive ? ['inherit', 'pipe', 'inherit'] : ['ignore', 'pipe', 'pipe'],
      })
    } catch (error) {
      return resolve(unstartable(run.command, error))
    }
    const output: Buffer[] = []
    let size = 0
    let stderr = ''
    let killedFor: string | undefined

    const kill = (): void => {
      try {
        if (ownGroup && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
        else child.kill('SIGKILL')
      } catch {
        // it ended by itself
      }
    }
    const end = (reason: string): void => {
      killedFor ??= reason
      kill()
      // a process that left the group may still hold the pipes
      child.stdout?.destroy()
      child.stderr?.destroy()
    }
    const onAbort = (): void => end('it was no longer needed')
    const timer = setTimeout(
      () => end(`it did not finish within ${run.timeoutMs / 1000} s and was ended`),
      run.timeoutMs,
    )
    run.signal.addEventListener('abort', onAbort, { once: true })
    if (running.size === 0) process.on('exit', killAll)
    running.add(kill)

    child.stdout?.on('data', (chunk: Buffer) => {
      output.push(chunk)
      if ((size += chunk.length) > maxOutput) end('it printed more than 1 MiB and was ended')
    })
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (stderr = (stderr + chunk).slice(-keptStderr)))
    const settle = (): void => {
      clearTimeout(timer)
      run.signal.removeEventListener('abort', onAbort)
      running.delete(kill)
      if (running.size === 0) process.off('exit', killAll)
    }
    child.once('error', (error) => {
      settle()
      resolve(unstartable(run.command, error))
    })
    return child.once('close', (code, signal) => {
      settle()
      if (run.signal.aborted) return reject(run.signal.reason)
      if (killedFor) return resolve({ problem: `${killedFor}${lastLines(stderr)}` })
      if (code === 0) return resolve({ stdout: Buffer.concat(output).toString('utf8') })
      const ending = code === null ? `was ended by ${signal}` : `failed with exit code ${code}`
      return resolve({ problem: `it ${ending}${run.interactive ? ' (see what it said above)' : lastLines(stderr)}` })
    })
  })

// Node's error itself is not passed on: it holds the arguments, which may be secret.
const unstartable = (command: string, error: unknown): PluginOutcome => {
  const code = codeOf(error)
  if (code === 'ENOENT') {
    const where = isAbsolute(command) ? 'does not exist' : 'is not in any folder of PATH'
    return { problem: `${quoted(command)} ${where}`, missing: true }
  }
  if (code === 'EACCES') return { problem: `${quoted(command)} may not be executed` }
  return { problem: `${quoted(command)} cannot be started with these arguments and this environment (${code})` }
}

/** The end of what it said, for a message: no control characters, nothing that looks like a token or a key. */
const lastLines = (stderr: string): string => {
  const lines = stderr
    .replaceAll(/-----BEGIN [\s\S]*?(-----END [^-]*-----|$)/g, '[PEM]')
    .replaceAll(/\b(eyJ[\w-]+\.[\w-]+(\.[\w-]*)?|k8s-aws-v1\.[\w-]+)/g, '[token]')
    .split(/\r?\n/)
    // oxlint-disable-next-line no-control-regex -- colours and cursor movements
    .map((line) => line.replaceAll(/\u001b\[[\d;?]*[A-Za-z]|[\u0000-\u001f\u007f-\u009f]/g, '').trim())
    .filter((line) => line !== '')
    .slice(-5)
  return lines.length > 0 ? `, saying: ${lines.map((line) => line.slice(0, 300)).join(' | ')}` : ''
}
