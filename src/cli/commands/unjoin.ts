import { finalizer, Klusterlet } from '../../api/index.ts'
import {
  ConnectionError,
  isForbidden,
  isNotFound,
  isUnauthorized,
  KubeconfigError,
  Namespace,
  Secret,
  type Client,
} from '../../kube/index.ts'
import { createdBy, namespace, operatorName } from '../../operator/contract.ts'
import { isHosted, managedRemoval } from '../../operator/index.ts'
import { secretName } from '../../registration/contract.ts'
import { removeAll } from '../apply.ts'
import { requireManaged, roleOf, withCluster, type Cluster } from '../cluster.ts'
import { defineCommand, type Cli } from '../command.ts'
import { Deployment, whyNotAvailable } from '../deployment.ts'
import { CliError } from '../errors.ts'
import { hostedCluster, type Place } from '../hosted.ts'
import { agentNamespace, tellHub, worksOn, type Farewell } from '../leaving.ts'
import { sayDryRun } from '../names.ts'
import { untilObjectsGone } from '../removal.ts'
import { untilObject } from '../wait.ts'

const flags = {
  'cluster-name': {
    help: 'The name of this cluster on its hub; may be left out where there is only one',
    default: '',
    value: 'NAME',
  },
  'purge-operator': { help: 'Also remove the operator, where no other agent needs it', default: true },
  force: { help: 'Also with works on the cluster, which are removed with what they brought', default: false },
} as const
type Unjoin = Cli<typeof flags>

export default defineCommand({
  text: 'Takes this cluster away from its hub: tells the hub with the credential of the cluster, waits until the hub has let it go, and removes agent and operator.',
  flags,
  examples: ['unjoin --cluster-name c1'],
  run: async (cli) => {
    sayDryRun(cli)
    await withCluster(cli, async (cluster) => {
      const klusterlet = await chosenKlusterlet(cli, cluster)
      if (!klusterlet) return nothingJoined(cli, cluster)
      const name = klusterlet.spec?.clusterName ?? cli.flags['cluster-name']
      if (!cli.flags.force && !klusterlet.metadata.deletionTimestamp)
        await refuseWorks(cli, cluster.client, klusterlet, name)
      if (cli.flags['dry-run']) return cli.out.line(`Cluster ${name} would leave its hub.`)
      const farewell = await tellHub(cli, cluster.client, klusterlet, name)
      if (!farewell.told) cli.progress.warn(`${farewell.hub} was not told: ${farewell.why}`)
      await removeKlusterlet(cli, cluster.client, klusterlet)
      await removeNamespace(cli, cluster.client, klusterlet)
      await purge(cli, cluster)
      cli.out.line(`Cluster ${name} has left its hub.`)
      for (const line of remains(name, farewell)) cli.out.line(line)
    })
  },
})

const refuseWorks = async (cli: Unjoin, client: Client, klusterlet: Klusterlet, name: string): Promise<void> => {
  const works = await worksOf(cli, client, klusterlet)
  if (works.length === 0) return
  throw new CliError(`cluster ${name} still carries out ${works.length} works: ${works.slice(0, 10).join(', ')}`, {
    next: `delete them on the hub (${cli.program} delete work ${works[0]} --clusters ${name}), or give --force to remove them with what they brought`,
  })
}

/** They are on the cluster that is managed, which may be another than this one. */
const worksOf = async (cli: Unjoin, client: Client, klusterlet: Klusterlet): Promise<string[]> => {
  let there: Place | undefined
  try {
    there = await hostedCluster(cli, client, klusterlet)
    return await worksOn(there?.client ?? client, cli.signal)
  } catch (error) {
    if (!isHosted(klusterlet.spec ?? {}) || !isUnseen(error)) throw error
    throw new CliError(`from here nobody can see what cluster ${klusterlet.spec?.clusterName} still carries out`, {
      next: 'leave where that cluster can be reached, or give --force to remove its works with what they brought',
      cause: error,
    })
  } finally {
    there?.client.close()
  }
}

const isUnseen = (error: unknown): boolean =>
  error instanceof ConnectionError || error instanceof KubeconfigError || isUnauthorized(error) || isForbidden(error)

const remains = (name: string, farewell: Farewell): string[] =>
  farewell.told
    ? [
        `On the hub, ManagedCluster ${name} remains without access until its clean-up removes it: kubectl delete managedcluster ${name}`,
      ]
    : [
        `What remains on ${farewell.hub}, if it still exists: ManagedCluster ${name}, its namespace and its rights.`,
        `Remove them there: kubectl delete managedcluster ${name}`,
      ]

const chosenKlusterlet = async (cli: Unjoin, { client }: Cluster): Promise<Klusterlet | undefined> => {
  const all = await client
    .of(Klusterlet)
    .list({ signal: cli.signal })
    .then(({ items }) => items)
    .catch((error: unknown) => {
      if (isNotFound(error)) return []
      throw error
    })
  const asked = cli.flags['cluster-name']
  const names = all.map(({ spec }) => spec?.clusterName ?? '')
  if (!asked && all.length > 1)
    throw new CliError(`there are several agents on this cluster: ${names.join(', ')}`, {
      next: 'say which with --cluster-name',
    })
  const chosen = asked ? all.find(({ spec }) => spec?.clusterName === asked) : all[0]
  if (!chosen && all.length > 0)
    throw new CliError(`this cluster did not join as ${asked}, but as ${names.join(', ')}`, {
      next: `${cli.program} unjoin --cluster-name ${names[0]}`,
    })
  return chosen
}

/** No agent: either all is done, or an earlier run was interrupted after it, or this is some other cluster. */
const nothingJoined = async (cli: Unjoin, cluster: Cluster): Promise<void> => {
  const { hub } = await roleOf(cluster, cli.signal)
  const orphans = await removeOrphans(cli, cluster.client)
  const removed = (await purge(cli, cluster)) || orphans
  if (!removed && hub) await requireManaged(cli, cluster)
  cli.out.line(
    removed ? 'What an earlier unjoin left is removed.' : 'There is no agent on this cluster: nothing to do.',
  )
}

/** The operator takes away what it made. Where there is no operator any more, nobody else would. */
const removeKlusterlet = async (cli: Unjoin, client: Client, klusterlet: Klusterlet): Promise<void> => {
  const name = klusterlet.metadata.name!
  const klusterlets = client.of(Klusterlet)
  await klusterlets.delete(name, { signal: cli.signal })
  const operator = await client.of(Deployment, namespace.operator).find(operatorName.managed, { signal: cli.signal })
  if (!operator) {
    cli.progress.warn('the operator is gone already: its agent is removed without it')
    const left = await klusterlets.find(name, { signal: cli.signal })
    const finalizers = left?.metadata.finalizers?.filter((one) => one !== finalizer.klusterlet)
    if (left) await klusterlets.patch(name, { merge: { metadata: { finalizers } } }, { signal: cli.signal })
  }
  const sick = operator && whyNotAvailable(operator)
  await cli.progress.step(
    `waiting for the operator to remove agent ${name}`,
    (step) =>
      untilObject(klusterlets, name, { step, clock: cli.clock }, (left) => {
        if (!left) return { done: undefined }
        const said =
          left.status?.conditions?.find(({ type }) => type === 'Applied')?.message ?? 'it has said nothing yet'
        return { seen: sick ? `the operator does not run (${sick})` : said }
      }),
    {
      timeoutMs: cli.flags.timeout * 1000,
      next: `is the operator running? kubectl -n ${namespace.operator} get deployment ${operatorName.managed}; run the same command again to go on`,
    },
  )
}

/** The operator does this too, where there is one. In a namespace of somebody else only what is ours goes. */
const removeNamespace = async (cli: Unjoin, client: Client, klusterlet: Klusterlet): Promise<void> => {
  const name = agentNamespace(klusterlet)
  const present = await client.of(Namespace).find(name, { signal: cli.signal })
  if (!present) return
  if (present.metadata.labels?.[createdBy.klusterlet] !== klusterlet.metadata.name) {
    for (const secret of [secretName.bootstrap, secretName.hub])
      await client.of(Secret, name).delete(secret, { signal: cli.signal })
    return
  }
  await client.of(Namespace).delete(name, { signal: cli.signal })
  const gone = { apiVersion: 'v1', kind: Namespace.kind, metadata: { name } }
  await untilObjectsGone(cli, client, [gone], 'the agent')
}

/** Namespaces that were made for agents of which there is none any more; says whether there was one. */
const removeOrphans = async (cli: Unjoin, client: Client): Promise<boolean> => {
  const { items } = await client.of(Namespace).list({ labelSelector: createdBy.klusterlet, signal: cli.signal })
  const left = items.map(({ metadata }) => ({
    apiVersion: 'v1',
    kind: Namespace.kind,
    metadata: { name: metadata.name! },
  }))
  const removed = await removeAll(client, left, { dryRun: cli.flags['dry-run'], signal: cli.signal })
  if (!cli.flags['dry-run']) await untilObjectsGone(cli, client, removed, 'the agent')
  return removed.length > 0
}

/** Removes the operator where no other agent needs it, and says whether there was something. */
const purge = async (cli: Unjoin, cluster: Cluster): Promise<boolean> => {
  if (!cli.flags['purge-operator']) return false
  const { client } = cluster
  const others = await client
    .of(Klusterlet)
    .list({ signal: cli.signal, metadataOnly: true })
    .then(({ items }) => items.length)
    .catch(() => 0)
  if (others > 0) return false
  const { hub } = await roleOf(cluster, cli.signal)
  const objects = managedRemoval({ hubRemains: hub })
  const removed = await removeAll(client, objects, { dryRun: cli.flags['dry-run'], signal: cli.signal })
  if (!cli.flags['dry-run']) await untilObjectsGone(cli, client, removed, 'the operator')
  return removed.length > 0
}
