import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Klusterlet, ManagedCluster } from '../../api/index.ts'
import {
  apiVersionOf,
  encoded,
  isNotFound,
  Namespace,
  Secret,
  type Api,
  type Client,
  type KubeObject,
  type SecretData,
} from '../../kube/index.ts'
import { createdBy, defaultName, externalKubeconfigSecret, namespace, operatorName } from '../../operator/contract.ts'
import { managedInstall } from '../../operator/index.ts'
import { configKey, Joined, secretKey, secretName } from '../../registration/contract.ts'
import { isTrue } from '../../runtime/index.ts'
import { applyAll } from '../apply.ts'
import { carriedOver } from '../carried-over.ts'
import { checkedHashes } from '../ca.ts'
import { roleOf, withCluster, type Cluster } from '../cluster.ts'
import { defineCommand, outputFlag, type Cli } from '../command.ts'
import { untilAvailable } from '../deployment.ts'
import { CliError } from '../errors.ts'
import { meetEndpoint } from '../grpc-hub.ts'
import { hostedClusterIn, hostedKubeconfig, type Place } from '../hosted.ts'
import { bootstrapKubeconfig, checkHub, checkNameIsFree, connectionIn } from '../hub-preflight.ts'
import { hubToken } from '../hub-token.ts'
import { clusterInfo, trustIn } from '../hub-trust.ts'
import { installOptions } from '../install-flags.ts'
import { checkJoinFlags, joinFlags, klusterletSpec, managedArnOf } from '../join-flags.ts'
import { sayDryRun } from '../names.ts'
import { untilKlusterlet } from '../settled.ts'
import { UsageError } from '../../main/flags.ts'
import { untilObject } from '../wait.ts'
import { strategiesOf } from '../hub-spec.ts'

const flags = { ...joinFlags, ...outputFlag } as const
type Join = Cli<typeof flags>

export default defineCommand({
  text: 'Asks a hub to manage this cluster: installs the agent with what it needs to ask. A person at the hub then accepts it. Running it again changes only what the flags say.',
  flags,
  examples: [
    'join --hub-token … --hub-apiserver https://hub.example.com:6443 --ca-hash sha256:… --cluster-name c1',
    'join --hub-token-file token --hub-apiserver https://hub.example.com:6443 --ca-file ca.crt --cluster-name c1 --wait',
    'join --registration-auth=grpc --grpc-server hub.example.com:8090 --grpc-ca-file ca.crt --hub-token … --cluster-name c1',
    'join --registration-auth=aws-irsa --hub-token … --hub-apiserver https://hub… --eks-hub-cluster-arn arn:aws:eks:… --cluster-name c1',
  ],
  run: async (cli) => {
    checkJoinFlags(cli.flags, cli.given)
    const token = await hubToken(cli)
    const install = await installOptions(cli.flags)
    sayDryRun(cli)
    await withCluster(cli, async (cluster) => {
      const place = placeOf(cli)
      const present = await presentKlusterlet(cli, cluster, place.klusterlet)
      const isIrsa = strategiesOf([cli.flags['registration-auth']]).includes('awsirsa')
      const managedArn = isIrsa ? managedArnOf(cli.flags, cluster) : undefined
      const hosted = await hostedIn(cli, cluster.client, place.namespace)
      const managed = hosted ? hosted.cluster : cluster
      const closing: { close: () => void }[] = hosted?.cluster ? [hosted.cluster.client] : []
      try {
        if (managed) await refuseHub(cli, managed)
        const { hub, server, bootstrap, known } = await meet(cli, managed?.client, token)
        closing.push(hub)
        await refuseOtherHub(cli, cluster.client, place.namespace, { present, server })
        const local = managed && (await clusterInfo(managed.client, cli.signal).catch(() => undefined))
        const spec = klusterletSpec(cli.flags, cli.given, {
          present: present?.spec,
          managedArn,
          namespace: place.specNamespace,
          externalUrl: local?.server,
        })
        const workRole = cli.flags['work-role']
        const objects: KubeObject[] = [
          ...managedInstall(
            await carriedOver(cluster.client, operatorName.managed, {
              ...cli,
              said: { ...install, ...(workRole && { workRole }) },
            }),
          ),
          ...(await agentNamespace(cli, cluster.client, place)),
          secretOf(place.namespace, secretName.bootstrap, bootstrap),
          ...(hosted
            ? [secretOf(place.namespace, externalKubeconfigSecret, { [secretKey.kubeconfig]: hosted.text })]
            : []),
          object(apiVersionOf(Klusterlet), Klusterlet.kind, { name: place.klusterlet }, { spec }),
        ]
        await installed(cli, cluster.client, objects)
        if (cli.flags.wait && !cli.flags['dry-run']) await untilKnown(cli, cluster.client, hub, place.klusterlet)
        await conclude(cli, { known, server }, place.klusterlet)
      } finally {
        for (const one of closing) one.close()
      }
    })
  },
})

const object = (
  apiVersion: string,
  kind: string,
  metadata: KubeObject['metadata'],
  fields: object = {},
): KubeObject => ({ apiVersion, kind, metadata, ...fields })

/** Made in the operator's name, so that it goes with the agent; one that is there already is somebody else's, and stays. */
const agentNamespace = async (
  cli: Join,
  client: Client,
  { namespace: name, klusterlet }: { namespace: string; klusterlet: string },
): Promise<KubeObject[]> =>
  (await client.of(Namespace).find(name, { signal: cli.signal }))
    ? []
    : [object('v1', 'Namespace', { name, labels: { [createdBy.klusterlet]: klusterlet } })]

const secretOf = (namespace: string, name: string, data: SecretData): KubeObject =>
  object('v1', 'Secret', { name, namespace }, { type: 'Opaque', data: encoded(data) })

/** Where the agent runs, and under which name. A hosted one is named after the cluster, so that joining again meets it. */
const placeOf = (cli: Join): { klusterlet: string; namespace: string; specNamespace: string } => {
  if (cli.flags.mode !== 'hosted')
    return { klusterlet: defaultName.klusterlet, namespace: namespace.agent, specNamespace: namespace.agent }
  const hash = createHash('sha256').update(cli.flags['cluster-name']).digest('hex').slice(0, 6)
  const klusterlet = `klusterlet-hosted-${hash}`
  return { klusterlet, namespace: klusterlet, specNamespace: `open-cluster-management-${klusterlet}` }
}

const presentKlusterlet = async (cli: Join, { client }: Cluster, name: string): Promise<Klusterlet | undefined> => {
  const present = await client
    .of(Klusterlet)
    .find(name, { signal: cli.signal })
    .catch((error: unknown) => {
      if (isNotFound(error)) return undefined
      throw error
    })
  const clusterName = present?.spec?.clusterName
  if (present?.metadata.deletionTimestamp)
    throw new CliError(`this cluster is leaving its hub: Klusterlet ${name} is being deleted`, {
      next: 'join again when it is gone',
    })
  if (!clusterName || clusterName === cli.flags['cluster-name']) return present
  throw new CliError(`this cluster has joined a hub already, as ${clusterName}`, {
    next: `to join under another name, leave first: ${cli.program} unjoin --cluster-name ${clusterName}`,
  })
}

const refuseHub = async (cli: Join, cluster: Place): Promise<void> => {
  if (cli.flags.force) return
  const hosted = cli.flags.mode === 'hosted'
  const { hub } = await roleOf(cluster, cli.signal)
  if (!hub) return
  throw new CliError(
    `${cluster.connection.server} (${cluster.connection.source}) is a hub, and join is for the cluster that is to be managed`,
    {
      next: `choose that cluster with ${hosted ? '--managed-cluster-kubeconfig' : '--context or --kubeconfig'}; if the hub itself is to be managed, give --force`,
    },
  )
}

interface Met {
  hub: Api
  server: string
  known: ManagedCluster | undefined
  /** What the agent is given to ask with. */
  bootstrap: SecretData
}

/** Over gRPC the API server is met only if it was named, for the kubeconfigs of add-ons. */
const meet = async (cli: Join, local: Client | undefined, token: string): Promise<Met> => {
  const isGrpc = strategiesOf([cli.flags['registration-auth']]).includes('grpc')
  const viaApi = !isGrpc || cli.flags['hub-apiserver'] ? await meetHub(cli, local, token) : undefined
  const kubeconfig = viaApi && { [secretKey.kubeconfig]: viaApi.kubeconfig }
  if (!isGrpc) {
    const { hub, known } = viaApi!
    return { hub, known, server: cli.flags['hub-apiserver'].replace(/\/+$/, ''), bootstrap: kubeconfig! }
  }
  viaApi?.hub.close()
  const { hub, known, config, server } = await meetEndpoint(cli, local, token)
  return { hub, known, server, bootstrap: { ...kubeconfig, [configKey]: config } }
}

/** Verifies the hub, then shows it the token, and asks whether the name is free. */
const meetHub = async (cli: Join, local: Client | undefined, token: string) => {
  const { 'proxy-url': proxyUrl, 'cluster-name': name } = cli.flags
  const server = cli.flags['hub-apiserver'].replace(/\/+$/, '')
  const parts = { server, token, ...(proxyUrl && { proxyUrl }) }
  const stranger = await connectionIn(cli, await bootstrapKubeconfig(parts), '--hub-apiserver')
  const trust = await trustIn(cli, {
    connection: { ...stranger, credentials: async () => ({}) },
    caFile: cli.flags['ca-file'],
    hashes: checkedHashes(cli.flags['ca-hash']),
    trustOnFirstUse: cli.flags['trust-on-first-use'],
  })
  const withCa = { ...parts, ca: trust.ca }
  const hub = await checkHub(
    cli,
    await connectionIn(cli, await bootstrapKubeconfig(withCa), '--hub-apiserver'),
    trust.because,
  )
  try {
    const known = await checkNameIsFree(cli, hub, local, name)
    const inside = cli.flags['force-internal-endpoint-lookup'] ? await clusterInfo(hub, cli.signal) : undefined
    if (cli.flags['force-internal-endpoint-lookup'] && !inside?.server)
      throw new CliError('the hub has no ConfigMap kube-public/cluster-info that says its own address', {
        next: 'leave --force-internal-endpoint-lookup away, and give --hub-apiserver an address that the agent can reach',
      })
    return { hub, known, kubeconfig: await bootstrapKubeconfig({ ...withCa, server: inside?.server ?? server }) }
  } catch (error) {
    hub.close()
    throw error
  }
}

const refuseOtherHub = async (
  cli: Join,
  local: Client,
  place: string,
  { present, server: asked }: { present: Klusterlet | undefined; server: string },
): Promise<void> => {
  if (!present) return
  const secret = await local.of(Secret, place).find(secretName.hub, { signal: cli.signal })
  const text = secret?.data?.[secretKey.kubeconfig]
  if (!text) return
  const server = /^\s*server:\s*(\S+)/m.exec(Buffer.from(text, 'base64').toString('utf8'))?.[1]
  if (!server || server === asked || cli.flags['force-internal-endpoint-lookup']) return
  throw new CliError(`this cluster belongs to another hub, ${server}`, {
    next: `leave it first: ${cli.program} unjoin --cluster-name ${cli.flags['cluster-name']}`,
  })
}

/** The way to the cluster that is managed from here, and that cluster if it answers; undefined where it is this one. */
const hostedIn = async (
  cli: Join,
  here: Client,
  namespace: string,
): Promise<{ text: string; cluster: Place | undefined } | undefined> => {
  if (cli.flags.mode !== 'hosted') return undefined
  const file = cli.flags['managed-cluster-kubeconfig']
  const text = file ? await textOf(file) : await hostedKubeconfig(cli, here, namespace)
  if (text === undefined)
    throw new UsageError('--managed-cluster-kubeconfig is missing: hosted needs the way to the cluster that is managed')
  return { text, cluster: await hostedClusterIn(cli, text, file || `secret ${namespace}/${externalKubeconfigSecret}`) }
}

const textOf = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new CliError(`--managed-cluster-kubeconfig ${file} cannot be read: ${cause.code}`, { cause })
  })

const installed = async (cli: Join, client: Client, objects: readonly KubeObject[]): Promise<void> => {
  const dryRun = cli.flags['dry-run']
  const changes = await applyAll(client, objects, { dryRun, signal: cli.signal })
  for (const [of, change] of changes) cli.progress.say(`${dryRun ? 'would be ' : ''}${change}: ${of}`)
  if (changes.size === 0) cli.progress.say('Everything is installed already.')
}

const untilKnown = async (cli: Join, local: Client, hub: Api, klusterlet: string): Promise<void> => {
  const timeoutMs = cli.flags.timeout * 1000
  const waiting = { client: local, clock: cli.clock, progress: cli.progress, timeoutMs }
  await untilAvailable(waiting, namespace.operator, operatorName.managed)
  await untilKlusterlet(waiting, klusterlet)
  const name = cli.flags['cluster-name']
  await cli.progress.step(
    `waiting for the agent to ask the hub to let cluster ${name} in`,
    (step) =>
      untilObject(hub.of(ManagedCluster), name, { step, clock: cli.clock }, (cluster) =>
        cluster ? { done: undefined } : { seen: 'the hub does not know of it yet' },
      ),
    { timeoutMs, next: `look at what the agent says: kubectl get klusterlet ${klusterlet} -o yaml` },
  )
}

const conclude = async (
  cli: Join,
  { known, server: hub }: Pick<Met, 'known' | 'server'>,
  klusterlet: string,
): Promise<void> => {
  const { 'cluster-name': name, output } = cli.flags
  const joined = known !== undefined && known.spec.hubAcceptsClient === true && isTrue(known, Joined.type)
  const next = `${cli.program} accept --clusters ${name}`
  await cli.out.data(output, { cluster: name, hub, klusterlet, joined, ...(joined ? {} : { next }) }, () =>
    joined
      ? `Cluster ${name} has joined the hub already.`
      : [
          'Log on to the hub and run:',
          '',
          `    ${next}`,
          '',
          'This is not needed where the hub accepts this cluster automatically (ManagedClusterAutoApproval).',
        ].join('\n'),
  )
}
