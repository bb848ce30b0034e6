import { chmod, writeFile } from 'node:fs/promises'
import { ClusterManager } from '../../api/index.ts'
import { apiVersionOf, type KubeObject } from '../../kube/index.ts'
import { defaultName, deploymentName, namespace, operatorName } from '../../operator/contract.ts'
import { hubInstall } from '../../operator/index.ts'
import { applyAll } from '../apply.ts'
import { carriedOver } from '../carried-over.ts'
import { clusterInfoObjects } from '../cluster-info.ts'
import { roleOf, withCluster, type Cluster } from '../cluster.ts'
import { defineCommand, type Cli } from '../command.ts'
import { probeCsr } from '../csr-probe.ts'
import { untilAvailable } from '../deployment.ts'
import { eksSign, strategyWarnings } from '../eks.ts'
import { CliError } from '../errors.ts'
import { checkHubFlags, hubArnOf, hubFlags, hubSpec, strategiesOf } from '../hub-spec.ts'
import { installOptions } from '../install-flags.ts'
import { loopbackWarning } from '../loopback.ts'
import { sayDryRun } from '../names.ts'
import { untilClusterManager } from '../settled.ts'
import { joinAdvice, joinCommand, ticketFor } from '../token.ts'

const flags = {
  wait: { help: 'Until the hub runs', default: false },
  ...hubFlags,
  force: { help: 'Also on a cluster that is managed by a hub itself, and without trying certificates', default: false },
  'use-bootstrap-token': { help: 'Print a bootstrap token of Kubernetes instead of an account token', default: false },
  'output-join-command-file': {
    help: 'Also write the join command to this file; it holds the token',
    default: '',
    value: 'FILE',
  },
  'create-namespace': { help: 'Always so', default: true, hidden: true },
  output: {
    help: 'How to print: text, json or yaml',
    default: 'text',
    short: 'o',
    value: 'FORM',
    choices: ['text', 'table', 'json', 'yaml'],
  },
} as const

type Init = Cli<typeof flags>

export default defineCommand({
  text: 'Makes a cluster a hub: installs the operator, its CRDs and rights, and a ClusterManager, and prints how clusters join. Running it again changes only what the flags say.',
  flags,
  examples: [
    'init --wait',
    'init --wait --registration-auth=aws-irsa --context my-eks-hub',
    'init --registration-auth csr,aws-irsa --hub-cluster-arn arn:aws:eks:us-west-2:123456789012:cluster/hub',
  ],
  run: async (cli) => {
    checkHubFlags(cli.flags, cli.given)
    const options = await installOptions(cli.flags)
    sayDryRun(cli)
    await withCluster(cli, async (cluster) => {
      await refuseManaged(cli, cluster)
      const hubArn = arnOf(cli, cluster)
      await checkStrategies(cli, cluster)
      const dryRun = cli.flags['dry-run']
      const changes = await applyAll(
        cluster.client,
        [
          ...hubInstall(await carriedOver(cluster.client, operatorName.hub, { ...cli, said: options })),
          ...(await clusterInfoObjects(cluster, cli.signal)),
        ],
        { dryRun, signal: cli.signal },
      )
      for (const [of, change] of await applyAll(cluster.client, [await clusterManager(cli, cluster, hubArn)], {
        dryRun,
        signal: cli.signal,
      }))
        changes.set(of, change)
      for (const [of, change] of changes) cli.progress.say(`${dryRun ? 'would be ' : ''}${change}: ${of}`)
      if (changes.size === 0) cli.progress.say('Everything is installed already.')
      if (dryRun) return
      if (cli.flags.wait) await untilHubRuns(cli, cluster)
      await printTicket(cli, cluster)
    })
  },
})

const refuseManaged = async (cli: Init, cluster: Cluster): Promise<void> => {
  const { hub, managed } = await roleOf(cluster, cli.signal)
  if (hub || !managed || cli.flags.force) return
  throw new CliError(`${cluster.connection.server} (${cluster.connection.source}) is a managed cluster`, {
    next: `choose another with --context or --kubeconfig; if it is to be both a hub and a managed cluster, give --force`,
  })
}

const checkStrategies = async (cli: Init, { client, connection, clusterName, context }: Cluster): Promise<void> => {
  const chosen = strategiesOf(cli.flags['registration-auth'])
  const { gitVersion } = await client.json<{ gitVersion: string }>({
    method: 'GET',
    path: '/version',
    signal: cli.signal,
  })
  const sign = eksSign({ server: connection.server, gitVersion, clusterName, context })
  for (const warning of strategyWarnings(chosen, sign)) cli.progress.warn(warning)
  if (!chosen.includes('csr') || cli.flags.force || cli.flags['dry-run']) return
  const outcome = await probeCsr({ client, clock: cli.clock, progress: cli.progress, signal: cli.signal })
  if (outcome.kind === 'refuses')
    cli.progress.warn(
      `this hub does not sign client certificates (${outcome.why}), so that no cluster can join it with csr; use --registration-auth aws-irsa on EKS, or give its kube-controller-manager a signing key`,
    )
  if (outcome.kind === 'untried')
    cli.progress.warn(`it could not be tried whether this hub signs client certificates: ${outcome.why}`)
}

/** Before anything is installed: a hub half set up for want of a flag helps nobody. */
const arnOf = (cli: Init, { clusterName, context }: Cluster): string | undefined =>
  strategiesOf(cli.flags['registration-auth']).includes('awsirsa')
    ? hubArnOf(cli.flags, { clusterName, context })
    : undefined

const clusterManager = async (cli: Init, { client }: Cluster, hubArn: string | undefined): Promise<KubeObject> => {
  const name = defaultName.clusterManager
  const present = await client
    .of(ClusterManager)
    .find(name, { signal: cli.signal })
    .then((one) => one?.spec)
  const spec = hubSpec(cli.flags, cli.given, { present, hubArn })
  return { apiVersion: apiVersionOf(ClusterManager), kind: ClusterManager.kind, metadata: { name }, spec } as KubeObject
}

const untilHubRuns = async (cli: Init, { client }: Cluster): Promise<void> => {
  const timeoutMs = cli.flags.timeout * 1000
  const waiting = { client, clock: cli.clock, progress: cli.progress, timeoutMs }
  await untilAvailable(waiting, namespace.operator, operatorName.hub)
  await untilClusterManager(waiting, defaultName.clusterManager)
  await untilAvailable(waiting, namespace.hub, deploymentName.hub(defaultName.clusterManager))
}

const printTicket = async (cli: Init, cluster: Cluster): Promise<void> => {
  const ticket = await ticketFor(cli, cluster, { seconds: 3600, bootstrapToken: cli.flags['use-bootstrap-token'] })
  const warning = ticket['registration-auth'] === 'grpc' ? undefined : loopbackWarning(ticket['hub-apiserver'])
  if (warning) cli.progress.warn(warning)
  const { wait, output, 'output-join-command-file': file } = cli.flags
  if (file) {
    await writeFile(file, `#!/bin/sh\n${joinCommand(cli.program, ticket, { wait, clusterName: '"$1"' })}\n`, {
      mode: 0o700,
    })
    await chmod(file, 0o700) // it was there before, or the umask says otherwise
  }
  const data = { ...ticket, 'join-command': joinCommand(cli.program, ticket, { wait }) }
  await cli.out.data(output, data, () =>
    [
      wait ? 'The hub is running.' : `The hub is being set up; ${cli.program} get hub-info shows how far it is.`,
      '',
      joinAdvice(cli, ticket, { wait }),
    ].join('\n'),
  )
}
