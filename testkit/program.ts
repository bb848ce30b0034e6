import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { ControlPlane } from './control-plane.ts'
import { plainEnvironment } from './paths.ts'

export type ProgramName = 'lanyard' | 'clusteradm' | 'clusterctl'

/** Where this checkout's program is. */
export const programPath = (name: ProgramName): string => fileURLToPath(new URL(`../bin/${name}`, import.meta.url))

/** What a command said, and how it ended. */
export interface Outcome {
  code: number
  stdout: string
  stderr: string
}

/** Runs a command of ours as a person would, with the kubeconfig of a cluster's administrator. */
export const runProgram = (
  name: ProgramName,
  args: readonly string[],
  { plane, env = {}, timeoutMs = 240_000 }: { plane: ControlPlane; env?: Record<string, string>; timeoutMs?: number },
): Promise<Outcome> => {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  const options = { env: { ...plainEnvironment(), KUBECONFIG: plane.kubeconfig, ...env }, timeout: timeoutMs }
  const child = execFile(programPath(name), args, options, (error, stdout, stderr) => {
    const code = typeof error?.code === 'number' ? error.code : error ? 1 : 0
    resolve({ code, stdout, stderr: error?.killed ? `${stderr}\nended by us after ${timeoutMs / 1000} s` : stderr })
  })
  child.stdin?.end()
  return promise
}

/** As `runProgram`, where anything but success is an error that shows what was said. */
export const mustRun = async (...[name, args, options]: Parameters<typeof runProgram>): Promise<string> => {
  const { code, stdout, stderr } = await runProgram(name, args, options)
  if (code !== 0) throw new Error(`${name} ${args.join(' ')}: exit code ${code}\n${stdout}${stderr}`)
  return stdout
}
