import { label, ManagedCluster } from '../../api/index.ts'
import { CertificateSigningRequest, isForbidden, type Client } from '../../kube/index.ts'
import { UsageError } from '../../main/flags.ts'
import { Accepted, Available, Joined } from '../../registration/contract.ts'
import { claimsAnArn, holderOf, isDecided } from '../../registration/drivers/index.ts'
import { findCondition, isTrue, timestamp } from '../../runtime/index.ts'
import type { AwsGrant, Granting } from '../aws-irsa/granting.ts'
import { awsIrsaFlags } from '../aws-irsa/hub-settings.ts'
import { withHub, type Cluster } from '../cluster.ts'
import { defineCommand, outputFlag, type Cli } from '../command.ts'
import { chooseRequests, isForCluster } from '../csr-choice.ts'
import { CliError } from '../errors.ts'
import { clustersFlags, clustersOf, missing, sayDryRun } from '../names.ts'
import { untilObject, untilObjects } from '../wait.ts'

const flags = {
  ...clustersFlags,
  wait: { help: 'Until the clusters have asked, are let in, and have joined', default: false },
  requesters: { help: 'Approve only certificate requests that these users made', default: [], value: 'USERS' },
  csr: {
    help: 'Approve these certificate requests, where several agents ask for one cluster',
    default: [],
    value: 'NAMES',
  },
  'skip-approve-check': {
    help: 'Approve requests whoever made them; what they ask for is still checked',
    default: false,
  },
  ...awsIrsaFlags,
  ...outputFlag,
} as const
type Accept = Cli<typeof flags>

export default defineCommand({
  text: 'Lets clusters in that asked to join: approves the certificate that each asks for, if it is its own, or makes its role in AWS where it asks by its ARN, and sets hubAcceptsClient last. What is done already is left alone.',
  flags,
  examples: ['accept --clusters c1', 'accept --clusters c1,c2 --wait', 'accept --clusters c1 --dry-run'],
  run: async (cli) => {
    const clusters = clustersOf(cli.flags)
    if (clusters.length === 0) throw new UsageError('--clusters is missing: name the clusters to let in')
    sayDryRun(cli)
    await withHub(cli, async (hub) => {
      const strategies = strategiesOn(cli, hub)
      const outcomes: Outcome[] = []
      const failures: Error[] = []
      try {
        for (const name of clusters) {
          // One that fails does not keep the others out.
          const outcome = await acceptOne(cli, hub.client, strategies, name).catch((error: Error) => {
            if (clusters.length === 1 || cli.signal.aborted) throw error
            failures.push(error)
            cli.progress.warn(`cluster ${name}: ${error.message}`)
          })
          if (outcome) outcomes.push(outcome)
        }
      } finally {
        await strategies.close()
      }
      await cli.out.data(cli.flags.output, outcomes, () => outcomes.map(sentence).join('\n'))
      if (failures.length > 0)
        throw new CliError(`${failures.length} of ${clusters.length} clusters were not let in`, { cause: failures[0] })
    })
  },
})

interface Outcome {
  cluster: string
  strategy: 'csr' | 'awsirsa'
  /** Certificate requests that were approved now. */
  approved: string[]
  /** What the cluster has in AWS. */
  aws?: AwsGrant
  wasAccepted: boolean
  joined: boolean
  dryRun: boolean
}

const sentence = ({ cluster, approved, aws, wasAccepted, joined, dryRun }: Outcome): string => {
  const given = aws ? `; role: ${aws.roleArn}` : approved.length > 0 ? `; approved: ${approved.join(', ')}` : ''
  if (dryRun) return `Cluster ${cluster} would be let in${given}.`
  if (joined) return `Cluster ${cluster} has joined${given}.`
  const its = aws ? 'has taken on its role' : 'has its certificate'
  return `Cluster ${cluster} ${wasAccepted ? 'was let in already' : 'is let in'}${given}; it joins as soon as its agent ${its}.`
}

/** What lets a cluster in beside the flag, by how it asks. */
interface Strategies {
  give(cluster: ManagedCluster): Promise<Pick<Outcome, 'strategy' | 'approved' | 'aws'>>
  close(): Promise<void>
}

/** An ARN on the object means that the cluster wants to be known by its role in AWS; AWS is loaded for those only. */
const strategiesOn = (cli: Accept, hub: Cluster): Strategies => {
  let granting: Granting | undefined
  return {
    give: async (cluster) => {
      if (!claimsAnArn(cluster)) return { strategy: 'csr', approved: await approveRequests(cli, hub.client, cluster) }
      const loaded = await import('../aws-irsa/granting.ts')
      granting ??= new loaded.Granting(cli, hub)
      return { strategy: 'awsirsa', approved: [], aws: await granting.give(cluster) }
    },
    close: async () => granting?.close(),
  }
}

const acceptOne = async (cli: Accept, client: Client, strategies: Strategies, name: string): Promise<Outcome> => {
  const cluster = await findCluster(cli, client, name)
  if (cluster.metadata.deletionTimestamp)
    throw new CliError(`cluster ${name} is being deleted on this hub`, { next: 'accept it when it has joined anew' })
  const dryRun = cli.flags['dry-run']
  const wasAccepted = cluster.spec.hubAcceptsClient === true
  // First without effect: who may not accept must not approve a certificate, or make a role, either.
  if (!wasAccepted) await setAccepted(cli, client, cluster, { dryRun: true })
  const given = await strategies.give(cluster)
  if (!wasAccepted && !dryRun) await setAccepted(cli, client, cluster, { dryRun: false })
  const outcome = { cluster: name, ...given, wasAccepted, joined: false, dryRun }
  if (dryRun) return outcome
  if (cli.flags.wait) await untilJoined(cli, client, name)
  const now = await client.of(ManagedCluster).get(name, { signal: cli.signal })
  const joined = isTrue(now, Joined.type) && isTrue(now, Accepted.type)
  const isShut = !joined && given.strategy === 'csr' && given.approved.length === 0
  if (isShut && !(await hasOpenDoor(cli, client, name)))
    throw new CliError(`cluster ${name} is let in, but has not asked for a certificate yet`, {
      next: `its agent does that next; wait for it: ${cli.program} accept --clusters ${name} --wait`,
    })
  return { ...outcome, joined }
}

const findCluster = async (cli: Accept, client: Client, name: string): Promise<ManagedCluster> => {
  const clusters = client.of(ManagedCluster)
  const found = await clusters.find(name, { signal: cli.signal })
  if (found) return found
  if (!cli.flags.wait) {
    const { items } = await clusters.list({ signal: cli.signal, metadataOnly: true })
    throw await missing(
      'cluster',
      name,
      items.map(({ metadata }) => metadata.name!),
      `if it has just joined, its agent may not have asked yet: add --wait`,
    )
  }
  return cli.progress.step(
    `waiting for cluster ${name} to ask to join`,
    (step) =>
      untilObject<ManagedCluster, ManagedCluster>(clusters, name, { step, clock: cli.clock }, (cluster) =>
        cluster ? { done: cluster } : { seen: 'this hub does not know of it yet' },
      ),
    { timeoutMs: cli.flags.timeout * 1000, next: `has it joined? on that cluster: ${cli.program} get klusterlet-info` },
  )
}

const setAccepted = async (
  cli: Accept,
  client: Client,
  { metadata: { name = '', uid } }: ManagedCluster,
  { dryRun }: { dryRun: boolean },
): Promise<void> => {
  // With its uid: one of the same name that came meanwhile is another cluster.
  const merge = { metadata: { uid }, spec: { hubAcceptsClient: true } }
  try {
    await client.of(ManagedCluster).patch(name, { merge }, { dryRun, signal: cli.signal })
  } catch (cause) {
    if (!isForbidden(cause)) throw cause
    throw new CliError(`you may not let cluster ${name} in: ${cause.serverMessage}`, {
      next: 'ask for the rights to patch managedclusters.cluster.open-cluster-management.io and to update managedclusters/accept of register.open-cluster-management.io',
      cause,
    })
  }
}

const selectorOf = (name: string): string => `${label.clusterName}=${name},!${label.addOnName}`

/** Approves what is the cluster's own, and says what is not. With --wait, waits for the first request. */
const approveRequests = async (cli: Accept, client: Client, cluster: ManagedCluster): Promise<string[]> => {
  const name = cluster.metadata.name!
  const csrs = client.of(CertificateSigningRequest)
  const holder = await holderOf(client, name, cli.signal)
  const { requesters, csr: names, 'skip-approve-check': anybody, 'dry-run': dryRun } = cli.flags
  const chooseAmong = (all: CertificateSigningRequest[]) => {
    const choice = chooseRequests(
      all.filter((one) => !isDecided(one)),
      { cluster: name, requesters, names, anybody, holder },
    )
    if (choice.ambiguous)
      throw new CliError(choice.ambiguous, { next: `say which: ${cli.program} accept --clusters ${name} --csr NAME` })
    return choice
  }
  const { items: labelled } = await csrs.list({ labelSelector: selectorOf(name), signal: cli.signal })
  const items = labelled.filter(isForCluster)
  let choice = chooseAmong(items)
  const answered = items.some(({ status }) => status?.conditions?.some(({ type }) => type === 'Approved'))
  if (choice.approve.length === 0 && !answered && cli.flags.wait && !dryRun && !isTrue(cluster, Joined.type))
    choice = await cli.progress.step(
      `waiting for cluster ${name} to ask for its certificate`,
      (step) =>
        untilObjects(csrs, { labelSelector: selectorOf(name), step, clock: cli.clock }, (seen) => {
          const all = seen.filter(isForCluster)
          const now = chooseAmong(all)
          if (now.approve.length > 0 || all.some(isApproved)) return { done: now }
          const refused = now.refused.map(({ name, why }) => `${name}: ${why}`)
          return { seen: refused.length > 0 ? refused.join('; ') : 'it has not asked yet' }
        }),
      {
        timeoutMs: cli.flags.timeout * 1000,
        next: `is its agent running? on that cluster: ${cli.program} get klusterlet-info`,
      },
    )
  for (const { name: of, why } of choice.refused) cli.progress.warn(`certificate request ${of} is not approved: ${why}`)
  if (choice.approve.length === 0 && choice.refused.length > 0 && !isTrue(cluster, Joined.type) && !answered)
    throw new CliError(`cluster ${name} is not let in: no certificate request for it is its own`, {
      next: `look at them: kubectl get csr -l ${label.clusterName}=${name}`,
    })
  const approved: string[] = []
  for (const csr of choice.approve) {
    await approve(cli, client, csr, dryRun)
    approved.push(csr.metadata.name!)
  }
  return approved
}

const isApproved = ({ status }: CertificateSigningRequest): boolean =>
  status?.conditions?.some(({ type }) => type === 'Approved') ?? false

const approve = async (cli: Accept, client: Client, csr: CertificateSigningRequest, dryRun: boolean): Promise<void> => {
  const condition = {
    type: 'Approved' as const,
    status: 'True' as const,
    reason: 'ClusteradmAccept',
    message: `approved by ${cli.program} accept`,
    lastUpdateTime: timestamp(cli.clock.now()),
  }
  try {
    await client
      .of(CertificateSigningRequest)
      .update(
        { ...csr, status: { ...csr.status, conditions: [condition] } },
        { subresource: 'approval', dryRun, signal: cli.signal },
      )
  } catch (cause) {
    if (!isForbidden(cause)) throw cause
    throw new CliError(`you may not approve certificate request ${csr.metadata.name}: ${cause.serverMessage}`, {
      next: `ask for the rights to update certificatesigningrequests/approval and to approve for the signer ${csr.spec.signerName}`,
      cause,
    })
  }
}

/** Whether a certificate is on its way: an approved request that the agent has not used yet. */
const hasOpenDoor = async (cli: Accept, client: Client, name: string): Promise<boolean> => {
  const { items } = await client
    .of(CertificateSigningRequest)
    .list({ labelSelector: selectorOf(name), signal: cli.signal })
  return items.filter(isForCluster).some(isApproved)
}

const untilJoined = (cli: Accept, client: Client, name: string): Promise<void> =>
  cli.progress.step(
    `waiting for cluster ${name} to join`,
    (step) =>
      untilObject(client.of(ManagedCluster), name, { step, clock: cli.clock }, (cluster) => {
        if (!cluster) throw new CliError(`cluster ${name} was deleted meanwhile`)
        for (const { type } of [Accepted, Joined, Available]) {
          const said = findCondition(cluster, type)
          if (said?.status !== 'True')
            return { seen: said ? `${type} is ${said.status}: ${said.message}` : `nothing is said about ${type} yet` }
        }
        return { done: undefined }
      }),
    { timeoutMs: cli.flags.timeout * 1000, next: `look at it: kubectl get managedcluster ${name} -o yaml` },
  )
