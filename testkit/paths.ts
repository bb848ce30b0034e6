import { createHash } from 'node:crypto'
import { accessSync, constants, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Where the real parts are found. The only place in the testkit that reads the environment. */
const env = process.env
const tool = (path: string) => readFileSync(new URL(`../tools/${path}`, import.meta.url))

/** What `make setup` fills, outside the checkout. */
export const cache = (): string =>
  env['LANYARD_CACHE'] || join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'lanyard')

/** The Kubernetes version of the control plane. */
export const kubernetesVersion = (): string => tool('control-plane/version').toString().trim()

/** The path of a program of the control plane: in `KUBEBUILDER_ASSETS` where set, else in the cache. */
export const controlPlaneBinary = (name: 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kubectl'): string => {
  const cached = join(cache(), `control-plane-${kubernetesVersion()}`, name)
  const assets = env['KUBEBUILDER_ASSETS']
  if (!assets) return executable([cached], 'run: make setup')
  return executable([join(assets, name), cached], 'unset KUBEBUILDER_ASSETS and run: make setup')
}

/** The path of a program in the private Python environment of the local AWS; its name follows what is installed in it. */
export const localAwsBinary = (name: string): string => {
  const version = createHash('sha256').update(tool('local-aws/requirements.txt')).digest('hex').slice(0, 12)
  return executable([join(cache(), `local-aws-${version}`, 'bin', name)], 'run: make setup')
}

/** The path of the EKS authenticator; its version is the one that its go.mod asks for. */
export const authenticatorBinary = (): string => {
  const name = 'aws-iam-authenticator'
  const version = new RegExp(`/${name} v([0-9.]+)`).exec(tool(`${name}/go.mod`).toString())?.[1]
  return executable([join(cache(), `${name}-${version}`, name)], 'run: make setup')
}

/**
 * What programs of the testkit inherit: the path to find others with, where Node keeps compiled code (half a second of CPU
 * for each of hundreds of processes), and nothing that could change how they behave.
 */
export const plainEnvironment = (): Record<string, string> => ({
  PATH: env['PATH'] ?? '',
  HOME: homedir(),
  ...(env['NODE_COMPILE_CACHE'] && { NODE_COMPILE_CACHE: env['NODE_COMPILE_CACHE'] }),
})

/** The first that can be run. Envtest's own assets have no controller manager, so a second place is looked at. */
const executable = (candidates: string[], next: string): string => {
  const found = candidates.find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
  if (!found) throw new Error(`there is no program ${candidates.join(' or ')}; ${next}`)
  return found
}
