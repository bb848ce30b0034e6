import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { plainEnvironment } from './paths.ts'

/** The variable by which the keeper knows which processes belong to a folder; see keeper.sh. */
export const keeperVariable = 'LANYARD_KEEPER'

// one keeper for this process: it must outlive every caller, and ends when the process does
let keeper: ChildProcess | undefined

const tell = (line: string): void => {
  keeper ??= startKeeper()
  keeper.stdin!.write(`${line}\n`)
}

/** In a session of its own, so that Ctrl-C does not reach it; and neither it nor its pipe keeps this process alive. */
const startKeeper = (): ChildProcess => {
  const script = fileURLToPath(new URL('keeper.sh', import.meta.url))
  const child = spawn('/bin/bash', [script], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
    env: plainEnvironment(), // were we a kept process ourselves, its keeper must not take ours along
  })
  child.unref()
  if (child.stdin instanceof Socket) child.stdin.unref()
  return child
}

/**
 * A new folder under the system's temporary one, that goes away with this process however it ends,
 * together with every process that was started with `LANYARD_KEEPER=<folder>` in its environment.
 */
export const keptFolder = (what: string): string => {
  const folder = mkdtempSync(join(tmpdir(), `lanyard-${what}-`))
  tell(`folder ${folder}`)
  return folder
}

/** Removes a kept folder, after its processes have ended. */
export const removeKeptFolder = (folder: string): void => {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  tell(`done ${folder}`)
}
