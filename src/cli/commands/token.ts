import { UsageError } from '../../main/flags.ts'
import { defineCommand } from '../command.ts'
import { checkedName } from '../names.ts'
import { throughCache } from '../tokens/cache.ts'
import { execCredential, readExecInfo } from '../tokens/exec-credential.ts'
import { cacheFile, connectToHub } from '../tokens/hub-place.ts'

export default defineCommand({
  text: 'Prints the token of a ManagedServiceAccount as an exec plug-in of a kubeconfig does. It is read from the hub and kept for a while, in a file that only you can read: however many clients ask at once, the hub is asked once. lanyard kubeconfig writes a kubeconfig that uses it.',
  flags: {
    cluster: {
      help: 'The managed cluster; without it, what the client names in KUBERNETES_EXEC_INFO',
      default: '',
      short: 'c',
      value: 'NAME',
      completes: 'clusters',
    },
    name: {
      help: 'The ManagedServiceAccount',
      default: '',
      value: 'NAME',
      aliases: ['service-account', 'managed-serviceaccount'],
    },
    'max-age': {
      help: 'How long it is used before the hub is asked for a newer one',
      default: 60,
      value: 'TIME',
      seconds: true,
    },
    cache: { help: 'Keep the token for the next call; --no-cache asks the hub each time', default: true },
    output: {
      help: 'json or yaml for an ExecCredential, token for the token alone',
      default: 'json',
      short: 'o',
      value: 'FORM',
      choices: ['json', 'yaml', 'token'],
    },
  },
  examples: ['token --cluster c1 --name reader', 'token --cluster c1 --name reader --context hub -o token'],
  run: async (cli) => {
    const { apiVersion, clusterName } = readExecInfo(cli.env['KUBERNETES_EXEC_INFO'])
    const { name, cache, output } = cli.flags
    if (!cli.flags.cluster && !clusterName)
      throw new UsageError('--cluster is missing: the name of the managed cluster')
    if (!name) throw new UsageError('--name is missing: the name of the ManagedServiceAccount')
    const cluster = checkedName('--cluster', cli.flags.cluster || clusterName!)
    const file = cache ? await cacheFile(cli, cluster, name) : undefined
    const { clock, signal } = cli
    // Loaded when the hub has to be asked: an answer from the cache must not wait for it.
    const loading = () => import('../tokens/read-token.ts')
    const found = await throughCache(
      {
        file,
        freshMs: cli.flags['max-age'] * 1000,
        clock,
        signal,
        isOutage: async (error) => (await loading()).isOutage(error),
        onOutage: (error) =>
          cli.progress.say(`the hub does not answer, the token from before is used: ${(error as Error).message}`),
      },
      async () => {
        const [{ readToken }, client] = await Promise.all([loading(), connectToHub(cli)])
        try {
          return await readToken(client, cluster, name, signal)
        } finally {
          client.close()
        }
      },
    )
    if (output === 'token') return cli.out.line(found.token)
    const credential = execCredential(found, apiVersion)
    if (output === 'yaml') return cli.out.data('yaml', credential, () => '')
    cli.out.line(JSON.stringify(credential))
  },
})
