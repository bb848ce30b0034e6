import { annotation, label, ManagedCluster, signer } from '../../api/index.ts'
import { CertificateSigningRequest, isForbidden, type Client } from '../../kube/index.ts'
import { UsageError } from '../../main/flags.ts'
import { Accepted, Available, Joined } from '../../registration/contract.ts'
import { holderOf, isDecided } from '../../registration/drivers/index.ts'
import { findCondition, isTrue, timestamp } from '../../runtime/index.ts'
import { withHub } from '../cluster.ts'
import { defineCommand, outputFlag, type Cli } from '../command.ts'
import { chooseRequests } from '../csr-choice.ts'
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
  ...outputFlag,
} as const
type Accept = Cli<typeof flags>

export default defineCommand({
  text: 'Lets clusters in that asked to join: approves the certificate that each asks for, if it is its own, and sets hubAcceptsClient. What is done already is left alone.',
  flags,
  examples: ['accept --clusters c1', 'accept --clusters c1,c2 --wait'],
  run: async (cli) => {
    const clusters = clustersOf(cli.flags)
    if (clusters.length === 0) throw new UsageError('--clusters is missing: name the clusters to let in')
    sayDryRun(cli)
    await withHub(cli, async ({ client }) => {
      const outcomes: Outcome[] = []
      const failures: Error[] = []
      for (const name of clusters) {
        // One that fails does not keep the others out.
        const outcome = await acceptOne(cli, client, name).catch((error: Error) => {
          if (clusters.length === 1 || cli.signal.aborted) throw error
          failures.push(error)
          cli.progress.warn(`cluster ${name}: ${error.message}`)
        })
        if (outcome) outcomes.push(outcome)
      }
      await cli.out.data(cli.flags.output, outcomes, () => outcomes.map(sentence).join('\n'))
      if (failures.length > 0)
        throw new CliError(`${failures.length} of ${clusters.length} clusters were not let in`, { cause: failures[0] })
    })
  },
})

interface Outcome {
  cluster: string
  strategy: string
  /** Certificate requests that were approved now. */
  approved: string[]
  wasAccepted: boolean
  joined: boolean
  dryRun: boolean
}

const sentence = ({ cluster, approved, wasAccepted, joined, dryRun }: Outcome): string => {
  const csrs = approved.length > 0 ? `; approved: ${approved.join(', ')}` : ''
  if (dryRun) return `Cluster ${cluster} would be let in${csrs}.`
  if (joined) return `Cluster ${cluster} has joined${csrs}.`
  return `Cluster ${cluster} ${wasAccepted ? 'was let in already' : 'is let in'}${csrs}; it joins as soon as its agent has its certificate.`
}

const acceptOne = async (cli: Accept, client: Client, name: string): Promise<Outcome> => {
  const cluster = await findCluster(cli, client, name)
  if (cluster.metadata.deletionTimestamp)
    throw new CliError(`cluster ${name} is being deleted on this hub`, { next: 'accept it when it has joined anew' })
  refuseAwsIrsa(cluster)
  const dryRun = cli.flags['dry-run']
  const wasAccepted = cluster.spec.hubAcceptsClient === true
  // First without effect: who may not accept must not approve a certificate either.
  if (!wasAccepted) await setAccepted(cli, client, name, { dryRun: true })
  const approved = await approveRequests(cli, client, cluster)
  if (!wasAccepted && !dryRun) await setAccepted(cli, client, name, { dryRun: false })
  const outcome = { cluster: name, strategy: 'csr', approved, wasAccepted, joined: false, dryRun }
  if (dryRun) return outcome
  if (cli.flags.wait) await untilJoined(cli, client, name)
  const now = await client.of(ManagedCluster).get(name, { signal: cli.signal })
  const joined = isTrue(now, Joined.type) && isTrue(now, Accepted.type)
  if (!joined && approved.length === 0 && !(await hasOpenDoor(cli, client, name)))
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

/**
 * An ARN on the object means that the cluster wants to be known by its AWS role. What that takes beside the flag is not made
 * here yet, and a certificate must not be approved in its place.
 */
const refuseAwsIrsa = ({ metadata }: ManagedCluster): void => {
  const { [annotation.eksManagedClusterArn]: asSpecified, [annotation.managedClusterArn]: asInTheField } =
    metadata.annotations ?? {}
  const arn = asSpecified ?? asInTheField
  if (arn === undefined) return
  throw new CliError(
    `cluster ${metadata.name} asks to join by aws-irsa (${arn}), which this command cannot grant yet`,
    {
      next: 'join it with --registration-auth csr, or use a version whose accept creates AWS identities',
    },
  )
}

const setAccepted = async (
  cli: Accept,
  client: Client,
  name: string,
  { dryRun }: { dryRun: boolean },
): Promise<void> => {
  try {
    await client
      .of(ManagedCluster)
      .patch(name, { merge: { spec: { hubAcceptsClient: true } } }, { dryRun, signal: cli.signal })
  } catch (cause) {
    if (!isForbidden(cause)) throw cause
    throw new CliError(`you may not let cluster ${name} in: ${cause.serverMessage}`, {
      next: 'ask for the rights to patch managedclusters.cluster.open-cluster-management.io and to update managedclusters/accept of register.open-cluster-management.io',
      cause,
    })
  }
}

const requestsOf = { fieldSelector: `spec.signerName=${signer.kubeApiServerClient}` }
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
  const { items } = await csrs.list({ ...requestsOf, labelSelector: selectorOf(name), signal: cli.signal })
  let choice = chooseAmong(items)
  const answered = items.some(({ status }) => status?.conditions?.some(({ type }) => type === 'Approved'))
  if (choice.approve.length === 0 && !answered && cli.flags.wait && !dryRun && !isTrue(cluster, Joined.type))
    choice = await cli.progress.step(
      `waiting for cluster ${name} to ask for its certificate`,
      (step) =>
        untilObjects(csrs, { ...requestsOf, labelSelector: selectorOf(name), step, clock: cli.clock }, (all) => {
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
      next: `ask for the rights to update certificatesigningrequests/approval and to approve for the signer ${signer.kubeApiServerClient}`,
      cause,
    })
  }
}

/** Whether a certificate is on its way: an approved request that the agent has not used yet. */
const hasOpenDoor = async (cli: Accept, client: Client, name: string): Promise<boolean> => {
  const { items } = await client
    .of(CertificateSigningRequest)
    .list({ ...requestsOf, labelSelector: selectorOf(name), signal: cli.signal })
  return items.some(isApproved)
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
