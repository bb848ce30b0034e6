import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import type { Client } from '../../kube/index.ts'
import type { Cli } from '../command.ts'
import { CliError } from '../errors.ts'

type Where = Pick<Cli, 'env' | 'program'> & { flags: { kubeconfig: string; context: string } }

/** The kubeconfigs that say where the hub is, absolute; as kubectl looks for them. */
export const kubeconfigFiles = ({ env, flags }: Pick<Where, 'env' | 'flags'>): string[] => {
  if (flags.kubeconfig) return [resolve(flags.kubeconfig)]
  const said = env['KUBECONFIG']?.split(delimiter).filter(Boolean) ?? []
  if (said.length > 0) return said.map((file) => resolve(file))
  return env['HOME'] ? [join(env['HOME'], '.kube', 'config')] : []
}

/**
 * What tells one hub and user from another, without reading the kubeconfig: that would take longer than all the rest. A file
 * that was written to is another one, so that a changed current-context is never answered with the token of another hub.
 */
export const placeKey = async (cli: Where, cluster: string, name: string): Promise<string> => {
  const files = await Promise.all(
    kubeconfigFiles(cli).map(async (file) => {
      const seen = await stat(file, { bigint: true }).catch(() => undefined)
      return [file, ...(seen ? [seen.ino, seen.size, seen.mtimeNs].map(String) : [])]
    }),
  )
  const { env, flags } = cli
  const pod = ['KUBERNETES_SERVICE_HOST', 'KUBERNETES_SERVICE_PORT', 'KUBERNETES_SERVICE_ACCOUNT_FOLDER']
  const parts = [files, pod.map((one) => env[one] ?? ''), flags.context, cluster, name]
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

/** Where tokens are cached; undefined where there is no place of one's own. A folder that all can write to is none. */
export const cacheFile = async (cli: Where, cluster: string, name: string): Promise<string | undefined> => {
  const { XDG_CACHE_HOME: said, HOME: home } = cli.env
  const base = said?.startsWith('/') ? said : home && join(home, '.cache')
  return base ? join(base, 'lanyard', 'tokens', await placeKey(cli, cluster, name)) : undefined
}

/** A client of the hub: of a kubeconfig where there is one, else of the cluster that this pod runs in. */
export const connectToHub = async (cli: Where): Promise<Client> => {
  const { clientFor, connectionFrom, inCluster, loadKubeconfig } = await import('../../kube/index.ts')
  const { env, flags } = cli
  const userAgent = `${cli.program}-token`
  const kubeconfig = await loadKubeconfig({ path: flags.kubeconfig || undefined, env })
  if (kubeconfig.sources.length === 0 && env['KUBERNETES_SERVICE_HOST'])
    return clientFor(await inCluster({ env }), { userAgent })
  const context = flags.context || kubeconfig.currentContext || ''
  const user = kubeconfig.contexts.get(context)?.value.user
  const exec = kubeconfig.users.get(user ?? '')?.value.exec
  // Without this, a kubeconfig whose current context is the managed cluster would have us start ourselves for ever.
  if (exec && isOurs(exec.command) && exec.args?.[0] === 'token')
    throw new CliError(`context ${context} is a managed cluster, whose tokens come from this command itself`, {
      next: 'name the hub with --context or --kubeconfig',
    })
  const options = { env, context: flags.context || undefined }
  return clientFor(connectionFrom(kubeconfig, options), { userAgent })
}

const isOurs = (command = ''): boolean => /(^|\/)(lanyard|clusteradm|clusterctl)$/.test(command)
