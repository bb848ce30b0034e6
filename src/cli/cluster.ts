import type { Client, Connection, Kubeconfig } from '../kube/index.ts'
import type { Cli } from './command.ts'
import { CliError } from './errors.ts'

/** The cluster that a command acts on, and how the kubeconfig calls it. */
export interface Cluster {
  client: Client
  connection: Connection
  kubeconfig: Kubeconfig
  /** The context that was used. */
  context: string
  /** The name of the cluster entry; for EKS often the ARN. */
  clusterName: string
}

type Where = Pick<Cli, 'env' | 'program'> & { flags: { kubeconfig: string; context: string } }

/** The cluster of --kubeconfig and --context, or the current one. Nothing is asked of it yet. */
export const connect = async ({ env, flags, program }: Where): Promise<Cluster> => {
  const { clientFor, connectionFrom, loadKubeconfig } = await import('../kube/index.ts')
  const kubeconfig = await loadKubeconfig({ path: flags.kubeconfig || undefined, env })
  const context = flags.context || kubeconfig.currentContext || ''
  const connection = connectionFrom(kubeconfig, { env, context: flags.context || undefined })
  const client = clientFor(connection, { userAgent: program })
  return { client, connection, kubeconfig, context, clusterName: kubeconfig.contexts.get(context)?.value.cluster ?? '' }
}

/** Runs something with a cluster, and closes its connections afterwards, so that the process can end. */
export const withCluster = async <T>(cli: Where, run: (cluster: Cluster) => Promise<T>): Promise<T> => {
  const cluster = await connect(cli)
  try {
    return await run(cluster)
  } finally {
    cluster.client.close()
  }
}

/** As `withCluster`, for commands that only a hub understands. */
export const withHub = <T>(cli: Cli, run: (cluster: Cluster) => Promise<T>): Promise<T> =>
  withCluster(cli, async (cluster) => {
    await requireHub(cli, cluster)
    return run(cluster)
  })

/** As `withCluster`, for commands that only a managed cluster understands. */
export const withManaged = <T>(cli: Cli, run: (cluster: Cluster) => Promise<T>): Promise<T> =>
  withCluster(cli, async (cluster) => {
    await requireManaged(cli, cluster)
    return run(cluster)
  })

/** Whether a kind of ours is served, asked at most once. */
const served = async ({ client }: Pick<Cluster, 'client'>, signal: AbortSignal) => {
  const { KindMapper } = await import('../kube/index.ts')
  const kinds = new KindMapper(client)
  return (kind: { group: string; version: string; kind: string }): Promise<boolean> =>
    kinds.find({ apiVersion: `${kind.group}/${kind.version}`, kind: kind.kind }, { signal }).then(Boolean)
}

/** What a cluster is to us, by the kinds that it serves and the Klusterlets that it has. One that manages itself is both. */
export const roleOf = async (
  cluster: Pick<Cluster, 'client'>,
  signal: AbortSignal,
): Promise<{ hub: boolean; managed: boolean }> => {
  const { ClusterClaim, ClusterManager, Klusterlet, ManagedCluster } = await import('../api/index.ts')
  const serves = await served(cluster, signal)
  const [clusters, managers, klusterlets, claims] = await Promise.all(
    [ManagedCluster, ClusterManager, Klusterlet, ClusterClaim].map(serves),
  )
  const hub = Boolean(clusters || managers)
  const agents = klusterlets
    ? (await cluster.client.of(Klusterlet).list({ limit: 1, metadataOnly: true, signal })).items.length
    : 0
  // An agent that runs without an operator brings its own kinds and no Klusterlet.
  return { hub, managed: agents > 0 || (Boolean(claims) && !hub) }
}

const placeOf = ({ connection }: Cluster): string => `${connection.server} (${connection.source})`

export const requireHub = async (cli: Cli, cluster: Cluster): Promise<void> => {
  const { ManagedCluster } = await import('../api/index.ts')
  // The usual answer with one request.
  if (await (await served(cluster, cli.signal))(ManagedCluster)) return
  const { hub, managed } = await roleOf(cluster, cli.signal)
  if (hub) return
  const is = managed ? 'a managed cluster' : 'not a hub'
  throw new CliError(`this command is for a hub, and ${placeOf(cluster)} is ${is}`, {
    next: `choose the hub with --context or --kubeconfig, or make this cluster one: ${cli.program} init`,
  })
}

export const requireManaged = async (cli: Cli, cluster: Cluster): Promise<void> => {
  const { hub, managed } = await roleOf(cluster, cli.signal)
  if (managed) return
  const is = hub ? 'a hub' : 'not one'
  throw new CliError(`this command is for a managed cluster, and ${placeOf(cluster)} is ${is}`, {
    next: `choose the managed cluster with --context or --kubeconfig, or let it join: ${cli.program} join --help`,
  })
}
