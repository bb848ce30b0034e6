import { spawn } from 'node:child_process'
import { openSync, writeFileSync } from 'node:fs'
import { dirname, relative } from 'node:path'
import { text } from 'node:stream/consumers'
import { keeperVariable, keptFolder } from '../keeper.ts'
import { controlPlaneBinary, plainEnvironment } from '../paths.ts'
import { programPath } from '../program.ts'
import type { Place } from './place.ts'

const checkout = new URL('../../', import.meta.url).pathname

/** A shell in which a person would type: the programs are on its path, and the kubeconfig has all clusters. */
export interface Shell {
  /** Runs a line and shows it with what it printed, tokens shortened; gives back its standard output. */
  show(line: string): Promise<string>
  /** Shows a program and starts it in the background, where it stays; its process id is in the file. */
  start(program: string, pidFile: string): void
  /** Sets a variable for the lines that follow. */
  set(name: string, value: string): void
  /** What a person types once to have the same. */
  readonly setup: string[]
}

export const shellIn = (place: Place, write: (text: string) => void): Shell => {
  const folders = [dirname(programPath('lanyard')), dirname(controlPlaneBinary('kubectl'))]
  const { PATH } = plainEnvironment()
  const env: Record<string, string> = {
    ...plainEnvironment(),
    PATH: [...folders, PATH].join(':'),
    KUBECONFIG: place.kubeconfig,
    KUBECACHEDIR: `${place.folder}/kubectl-cache`,
    [keeperVariable]: keptFolder('demo-shell'), // should we be killed, the command at work goes too
  }
  return {
    setup: [`export PATH=${folders.join(':')}:$PATH`, `export KUBECONFIG=${place.kubeconfig}`],
    set: (name, value) => {
      env[name] = value
    },
    start: (program, pidFile) => {
      write(`\n$ node ${relative(checkout, program)} &\n`)
      const out = openSync(place.log, 'a')
      const { [keeperVariable]: _, ...own } = env
      const child = spawn(process.execPath, [program], { env: own, detached: true, stdio: ['ignore', out, out] })
      child.unref()
      writeFileSync(pidFile, String(child.pid))
    },
    show: async (line) => {
      write(`\n$ ${line}\n`)
      const child = spawn('/bin/bash', ['-c', line], { env, cwd: place.folder, stdio: ['ignore', 'pipe', 'pipe'] })
      const shown = (chunk: unknown): void => write(withoutTokens(String(chunk)))
      child.stdout.on('data', shown)
      child.stderr.on('data', shown)
      const code = new Promise<number | null>((resolve) => child.once('close', resolve))
      const output = await text(child.stdout)
      if ((await code) !== 0) throw new Error(`this step failed with exit code ${await code}; the log is ${place.log}`)
      return output
    },
  }
}

/** Nobody needs to see them whole, and whoever shows their screen should not show them. */
const withoutTokens = (line: string): string => line.replaceAll(/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, 'eyJhbGciOi…')
