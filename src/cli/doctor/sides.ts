import type { Flags, ValuesOf } from '../../main/flags.ts'
import { KubeconfigError } from '../../kube/index.ts'
import { connect, roleOf, type Cluster } from '../cluster.ts'
import type { Cli } from '../command.ts'
import { CliError } from '../errors.ts'
import type { Words } from './snapshot.ts'

/** Where the two clusters are. */
export const sideFlags = {
  'hub-kubeconfig': {
    help: 'The kubeconfig of the hub, where --kubeconfig is for the other side',
    default: '',
    value: 'FILE',
  },
  'hub-context': { help: 'The context of the hub', default: '', value: 'NAME', completes: 'contexts' },
  'managed-kubeconfig': {
    help: 'The kubeconfig of the managed cluster, where --kubeconfig is for the hub',
    default: '',
    value: 'FILE',
  },
  'hub-namespace': {
    help: 'Where the hub runs, where no ClusterManager runs it; open-cluster-management-hub unless told',
    default: '',
    value: 'NAME',
  },
  'managed-context': { help: 'The context of the managed cluster', default: '', value: 'NAME', completes: 'contexts' },
} as const satisfies Flags

type Asking = Cli & { flags: ValuesOf<typeof sideFlags> }

/** The clusters that the flags lead to, and how commands reach them. */
export interface Sides {
  hub: Cluster | undefined
  managed: Cluster | undefined
  words: Words
}

interface Place {
  kubeconfig: string
  context: string
}

const wordsOf = ({ kubeconfig, context }: Place): string[] => [
  ...(kubeconfig ? ['--kubeconfig', kubeconfig] : []),
  ...(context ? ['--context', context] : []),
]

/** Connects to what there is. With one kubeconfig alone, the cluster itself shows which side it is; it may be both. */
export const sidesOf = async (cli: Asking): Promise<Sides> => {
  const { flags } = cli
  const own: Place = { kubeconfig: flags.kubeconfig, context: flags.context }
  const place = (side: 'hub' | 'managed'): Place | undefined => {
    const [kubeconfig, context] = [flags[`${side}-kubeconfig`], flags[`${side}-context`]]
    // Another context of the same file, unless another file is named.
    return kubeconfig || context ? { kubeconfig: kubeconfig || own.kubeconfig, context } : undefined
  }
  const [hub, managed] = [place('hub'), place('managed')]
  const at = (of: Place): Promise<Cluster> => connect({ ...cli, flags: of })
  if (hub && managed)
    return { hub: await at(hub), managed: await at(managed), words: { hub: wordsOf(hub), managed: wordsOf(managed) } }
  if (hub) {
    const other = await ownSide(cli, own)
    return { hub: await at(hub), managed: other, words: { hub: wordsOf(hub), managed: wordsOf(own) } }
  }
  if (managed) {
    const other = await ownSide(cli, own)
    return { hub: other, managed: await at(managed), words: { hub: wordsOf(own), managed: wordsOf(managed) } }
  }
  return alone(cli, own)
}

/** A person who names only the other side may have no kubeconfig for this one. */
const ownSide = async (cli: Asking, own: Place): Promise<Cluster | undefined> => {
  try {
    return await connect({ ...cli, flags: own })
  } catch (error) {
    if (error instanceof KubeconfigError && !own.kubeconfig && !own.context) return undefined
    throw error
  }
}

const alone = async (cli: Asking, own: Place): Promise<Sides> => {
  const cluster = await connect({ ...cli, flags: own })
  try {
    const { hub, managed } = await roleOf(cluster, cli.signal)
    const words = wordsOf(own)
    if (!hub && !managed)
      throw new CliError(
        `${cluster.connection.server} (${cluster.connection.source}) is neither a hub nor a managed cluster`,
        {
          next: [
            `to find out why it does not join, name its hub too: ${cli.program} doctor NAME --hub-kubeconfig FILE`,
            `to make it a hub: ${cli.program} init`,
          ].join('\n'),
        },
      )
    return {
      hub: hub ? cluster : undefined,
      managed: managed ? cluster : undefined,
      words: { hub: hub ? words : [], managed: managed ? words : [] },
    }
  } catch (error) {
    cluster.client.close()
    throw error
  }
}
