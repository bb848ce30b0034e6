import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ControlPlane } from './control-plane.ts'
import { keeperVariable } from './keeper.ts'
import { plainEnvironment } from './paths.ts'
import { programPath, type Outcome } from './program.ts'

/** A network namespace: its loopback has these ports of ours and no others, and there is no other interface. */
export interface OwnNetwork {
  /** `lanyard`, run in there: for those who start one. Where it says how it is can be asked from outside. */
  readonly lanyard: string
  /** Runs a program in there to its end. */
  run(program: string, args: readonly string[], timeoutMs?: number): Promise<Outcome>
  /** What becomes of a connection to a port of 127.0.0.1 in there: `open`, or the code of the error. */
  reaches(port: number): Promise<string>
}

const runner = fileURLToPath(new URL('programs/own-network.ts', import.meta.url))

/** How a program asks for the answer of `reaches`. */
const knock = `
  const socket = require('node:net').connect(Number(process.argv[1]), '127.0.0.1')
  const say = (what) => { console.log(what); socket.destroy() }
  socket.once('connect', () => say('open')).once('error', ({ code }) => say(code))`

/** The port that an address ends with. */
export const portOf = (address: string): number => Number(/:(\d+)\/?$/.exec(address)?.[1])

/** A network of its own for the programs of a control plane; they end with it. Needs `unshare` and `python3`. */
export const ownNetwork = (plane: ControlPlane, { open }: { open: readonly number[] }): OwnNetwork => {
  const lanyard = join(plane.folder, 'lanyard-in-own-network')
  const prefix = [runner, plane.folder, open.join(',')]
  const quoted = [process.execPath, ...prefix, programPath('lanyard')].map((word) => `'${word}'`).join(' ')
  writeFileSync(lanyard, `#!/bin/sh\nexec ${quoted} "$@"\n`, { mode: 0o755 })

  const run: OwnNetwork['run'] = (program, args, timeoutMs = 240_000) => {
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    const env = { ...plainEnvironment(), [keeperVariable]: plane.folder }
    const options = { env, timeout: timeoutMs }
    execFile(process.execPath, [...prefix, program, ...args], options, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? 1 : 0, stdout, stderr }),
    )
    return promise
  }
  return {
    lanyard,
    run,
    reaches: async (port) => {
      const { stdout, stderr } = await run(process.execPath, ['-e', knock, String(port)])
      return (stdout + stderr).trim()
    },
  }
}
