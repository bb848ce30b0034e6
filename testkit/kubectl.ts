import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { controlPlaneBinary, plainEnvironment } from './paths.ts'

/** How kubectl is run. */
export interface KubectlOptions {
  kubeconfig: string
  /** Keeps its cache of what the server offers, so that nothing is written to the home folder. */
  folder: string
  /** For `-f -`. */
  input?: string | undefined
  /** More variables in its environment, which exec plug-ins inherit. */
  env?: Record<string, string> | undefined
}

/** Runs kubectl, and returns what it printed; a failure carries what it complained about. */
export const kubectl = (
  args: readonly string[],
  { kubeconfig, folder, input, env }: KubectlOptions,
): Promise<string> => {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const child = execFile(
    controlPlaneBinary('kubectl'),
    ['--kubeconfig', kubeconfig, '--cache-dir', join(folder, 'kubectl-cache'), ...args],
    { env: { ...plainEnvironment(), ...env }, maxBuffer: 64 * 1024 * 1024 },
    (error, stdout, stderr) => {
      if (!error) return resolve(stdout)
      return reject(new Error(`kubectl ${args.join(' ')}: ${stderr.trim() || error.message}`, { cause: error }))
    },
  )
  child.stdin?.end(input ?? '')
  return promise
}
