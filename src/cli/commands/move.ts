import { UsageError } from '../../main/flags.ts'
import { defineCommand, outputFlag } from '../command.ts'
import { hubNamespaceFlag } from '../aws/directory.ts'
import { regionFlag } from '../aws/session.ts'

export default defineCommand({
  text: 'Moves the clusters of a namespace to another management cluster: Clusters, AWSClusters and whatever belongs to them leave this one; the identities that they use in AWS, and the keys of these, are copied. Nothing changes in AWS, and at no moment do both management clusters act. Everything that could stand in the way is looked for before anything is paused. A move that was interrupted is finished by running it again, or given up with --abort as long as nothing was removed here. With --to-directory the clusters are paused and written to files, and --from-directory brings them in.',
  flags: {
    'to-kubeconfig': { help: 'The kubeconfig of the management cluster to move to', default: '', value: 'FILE' },
    'to-context': {
      help: 'The context of the management cluster to move to, instead of the current one',
      default: '',
      value: 'NAME',
      aliases: ['to-kubeconfig-context'],
      completes: 'contexts',
    },
    namespace: {
      help: 'The namespace to move, instead of that of the context',
      default: '',
      short: 'n',
      value: 'NAME',
    },
    'to-directory': { help: 'Write to this directory instead of a cluster', default: '', value: 'DIRECTORY' },
    'from-directory': { help: 'Read from this directory instead of a cluster', default: '', value: 'DIRECTORY' },
    abort: {
      help: 'Give up a move that was interrupted: what came to the target goes, and the clusters are acted for here again',
      default: false,
    },
    'include-secrets': { help: 'With --to-directory: write Secrets in clear too', default: false },
    'account-check': {
      help: 'Let the controller of the target say which accounts it reaches, before anything is paused',
      default: true,
    },
    'keep-allowed-namespaces': {
      help: 'Accept identities on the target that differ only in who may use them',
      default: false,
    },
    'to-hub-namespace': {
      help: 'Where the hub runs on the target, instead of the same namespace as here',
      default: '',
      value: 'NAME',
    },
    'hide-api-warnings': {
      help: 'Warnings of API servers are not shown, whatever is said here',
      default: 'default',
      value: 'WHICH',
      choices: ['default', 'all'],
      hidden: true,
    },
    ...hubNamespaceFlag,
    ...regionFlag,
    ...outputFlag,
  },
  examples: [
    'move -n team-a --to-kubeconfig other.kubeconfig --dry-run',
    'move -n team-a --to-kubeconfig other.kubeconfig',
    'move -n team-a --to-kubeconfig other.kubeconfig --abort',
    'move -n team-a --to-directory team-a.backup',
    'move --from-directory team-a.backup --to-kubeconfig other.kubeconfig',
  ],
  run: async (cli) => {
    const { 'to-kubeconfig': file, 'to-context': context, 'to-directory': into, 'from-directory': from } = cli.flags
    if (into && from) throw new UsageError('--to-directory and --from-directory exclude each other: give one of them')
    if (into && (file || context)) throw new UsageError('--to-directory takes the place of --to-kubeconfig: give one')
    if (from && cli.flags.namespace) throw new UsageError('--from-directory knows its namespace: leave --namespace out')
    if (cli.flags['include-secrets'] && !into) throw new UsageError('--include-secrets is for --to-directory')
    if (from && (file || context) && (cli.given.has('kubeconfig') || cli.given.has('context')))
      throw new UsageError('--from-directory takes the place of --kubeconfig and --context: leave them out')
    if (cli.flags.abort && (into || from))
      throw new UsageError(
        '--abort is for a move between two clusters; what --to-directory has paused goes on where the directory is read: with --from-directory, here too',
      )
    if (!into && !from && !file && !context)
      throw new UsageError('say where to move: with --to-kubeconfig or --to-context, or --to-directory')
    const { abortMoveOf, exportClusters, importClusters, moveClusters } = await import('../move/index.ts')
    if (cli.flags.abort) return abortMoveOf(cli)
    if (into) return exportClusters(cli, into)
    return from ? importClusters(cli, from) : moveClusters(cli)
  },
})
