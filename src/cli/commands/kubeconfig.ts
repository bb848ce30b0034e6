import { delimiter, resolve } from 'node:path'
import { ManagedCluster } from '../../api/index.ts'
import { kubeconfigText, writeKubeconfig } from '../../kube/index.ts'
import { UsageError } from '../../main/flags.ts'
import { addressAdvice, addressOf, trustOf } from '../../serviceaccounts/tokens/index.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { CliError } from '../errors.ts'
import { checkedName, missing, sayDryRun } from '../names.ts'
import { kubeconfigFiles } from '../tokens/hub-place.ts'
import { mergeInto } from '../tokens/merge.ts'
import { readToken } from '../tokens/read-token.ts'

export default defineCommand({
  text: 'Prints a kubeconfig for a managed cluster that uses the token of a ManagedServiceAccount, or merges it into the one you have. It holds no secret: clients ask lanyard token, which asks the hub, so that it goes on working through rotations.',
  flags: {
    cluster: { help: 'The managed cluster', default: '', short: 'c', value: 'NAME', completes: 'clusters' },
    'service-account': {
      help: 'The ManagedServiceAccount',
      default: '',
      value: 'NAME',
      aliases: ['name', 'managed-serviceaccount'],
    },
    namespace: { help: 'The namespace that the context is for', default: '', short: 'n', value: 'NAME' },
    'context-name': { help: 'What the context is called, instead of ACCOUNT@CLUSTER', default: '', value: 'NAME' },
    server: { help: 'Where the API server is, instead of what the hub says', default: '', value: 'URL' },
    merge: { help: 'Merge it into --file, or else into your own kubeconfig', default: false },
    use: { help: 'With --merge: make it the current context', default: false },
    file: { help: 'Write it to a file that only you can read', default: '', value: 'FILE' },
    'embed-token': { help: 'Write the token itself instead of the plug-in: it ends, and is a secret', default: false },
    'exec-command': {
      help: 'How clients find this program, where it is not in their PATH',
      default: '',
      value: 'PATH',
    },
    output: {
      help: 'How to print: yaml or json',
      default: 'yaml',
      short: 'o',
      value: 'FORM',
      choices: ['yaml', 'json'],
    },
  },
  examples: [
    'kubeconfig --cluster c1 --service-account reader',
    'kubeconfig --cluster c1 --service-account reader --merge --use',
    'kubeconfig --cluster c1 --service-account reader --embed-token --file c1.kubeconfig',
  ],
  run: async (cli) => {
    const { 'service-account': name, 'embed-token': embed, 'context-name': called, merge, file, output } = cli.flags
    if (!cli.flags.cluster) throw new UsageError('--cluster is missing: the name of the managed cluster')
    if (!name) throw new UsageError('--service-account is missing: the name of the ManagedServiceAccount')
    if (cli.flags.use && !merge) throw new UsageError('--use goes with --merge')
    if (embed && !file && !merge)
      throw new UsageError('--embed-token needs --file: what a shell writes, others could read')
    const cluster = checkedName('--cluster', cli.flags.cluster)
    const context = called || `${name}@${cluster}`
    const own = kubeconfigFiles(cli)
    await withHub(cli, async (hub) => {
      const { signal } = cli
      const found = await hub.client.of(ManagedCluster).find(cluster, { signal })
      if (!found) {
        const { items } = await hub.client.of(ManagedCluster).list({ metadataOnly: true, signal })
        throw await missing('cluster', cluster, items.map(({ metadata }) => metadata.name!).toSorted())
      }
      const held = await readToken(hub.client, cluster, name, signal)
      const said = addressOf(found)
      const address = cli.flags.server ? { ...said, server: cli.flags.server } : said
      if (!address)
        throw new CliError(`the hub does not know where ${cluster} is`, {
          next: `give its address with --server, or ${addressAdvice(cluster)}`,
        })
      const text = await kubeconfigText({
        cluster: context,
        server: address.server,
        ca: trustOf(address, held.ca),
        namespace: cli.flags.namespace || undefined,
        user: embed
          ? { token: held.token }
          : {
              exec: {
                apiVersion: 'client.authentication.k8s.io/v1',
                command: cli.flags['exec-command'] || cli.program,
                args: [
                  'token',
                  '--cluster',
                  cluster,
                  '--name',
                  name,
                  ...(hub.context ? ['--context', hub.context] : []),
                ],
                // The hub is where it was found now, whichever kubeconfig the client is given later.
                env: [{ name: 'KUBECONFIG', value: own.join(delimiter) }],
                installHint: 'lanyard is not in your PATH; write this again with --exec-command and its path',
              },
            },
      })
      if (!merge && !file) {
        const { parse } = await import('yaml')
        if (output === 'json') return cli.out.data('json', parse(text), () => '')
        return cli.out.line(text.trimEnd())
      }
      const target = resolve(file || own[0]!)
      sayDryRun(cli)
      if (!cli.flags['dry-run']) await (merge ? mergeInto(target, text, cli.flags) : writeKubeconfig(target, text))
      cli.progress.say(`context ${context} ${cli.flags['dry-run'] ? 'would be' : 'is'} in ${target}`)
    })
  },
})
