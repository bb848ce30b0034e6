import { label, ManagedCluster } from '../../../api/index.ts'
import {
  CertificateSigningRequest,
  mayAccess,
  requesterOf,
  type Api,
  type CertificateSigningRequestCondition,
  type Requester,
} from '../../../kube/index.ts'
import {
  findCondition,
  timestamp,
  watching,
  type Clock,
  type EventRecorder,
  type Informer,
  type Logger,
  type Manager,
  type Reconcile,
} from '../../../runtime/index.ts'
import { approvedReason, Available, Joined, registerGroup } from '../../contract.ts'
import { isDecided, stateOf, type ApprovalPolicy, type CsrState, type Outcome } from './checks.ts'
import { agentNameOf, decide, vouches } from './decision.ts'
import { malformed } from './form.ts'
import { holderOf, recordHolder } from './holder.ts'

export interface ApprovalOptions {
  /** Of the controller: `csr-approval`. */
  name: string
  client: Api
  signerName: string
  policy: ApprovalPolicy
  events: Pick<EventRecorder, 'record'>
  clock: Clock
  log: Logger
  /** Whether a cluster is known by certificates, on a hub with other ways beside; all are unless told. */
  isOurs?: ((cluster: ManagedCluster) => boolean) | undefined
  /** Who asked; the user that the API server has authenticated, unless requests come over another wire. */
  requesterOf?: ((csr: CertificateSigningRequest, state: Pick<CsrState, 'request'>) => Requester) | undefined
}

const byCluster = 'cluster'
const clusterOf = (csr: CertificateSigningRequest): string => csr.metadata.labels?.[label.clusterName] ?? ''

/**
 * Decides about the certificate requests of clusters. Keys are clusters, not requests: two requests for one cluster must
 * not both be found to be the first.
 */
export class Approval {
  readonly csrs: Informer<CertificateSigningRequest>
  readonly #options: ApprovalOptions
  readonly #clusters: Informer<ManagedCluster>
  readonly #count: (outcome: string) => void
  /** What was said last about each open request, so that it is said once. */
  readonly #told = new Map<string, string>()

  constructor(options: ApprovalOptions, manager: Manager) {
    this.#options = options
    this.#clusters = manager.informer(ManagedCluster)
    this.csrs = manager.informer(CertificateSigningRequest, {
      labelSelector: label.clusterName,
      fieldSelector: `spec.signerName=${options.signerName}`,
      indexes: { [byCluster]: (csr) => [clusterOf(csr)] },
    })
    this.csrs.on({ deleted: (csr) => this.#told.delete(csr.metadata.uid ?? '') })
    const total = manager.metrics.counter('registration_csr_total', 'Certificate requests of clusters by outcome')
    this.#count = (outcome) => total.inc({ signer: options.signerName, outcome })
    manager.controller({
      name: options.name,
      reconcile: this.#reconcile,
      watches: [
        watching(this.csrs, (csr) => [clusterOf(csr)]),
        watching(this.#clusters, undefined, (cluster, old) => !old || judgedBy(cluster) !== judgedBy(old)),
      ],
    })
  }

  /** Whatever has been asked for this cluster, in any state. */
  requestsOf(cluster: string): CertificateSigningRequest[] {
    return this.csrs.by(byCluster, cluster)
  }

  /** Whether somebody whose clusters need no person has asked for a certificate of this cluster. */
  vouched(cluster: string): boolean {
    return this.csrs.by(byCluster, cluster).some((csr) => vouches(this.#stateOf(csr), this.#options.policy))
  }

  readonly #reconcile: Reconcile = async (cluster, signal) => {
    const all = this.csrs.by(byCluster, cluster).toSorted(oldestFirst)
    await this.#remember(cluster, all, signal)
    let again = false
    for (const csr of all.filter((one) => !isDecided(one))) {
      const state = this.#stateOf(csr)
      const outcome = await decide(state, this.#options.policy, this.#knowledge(state, signal))
      await this.#act(state, outcome, signal)
      again ||= outcome.kind === 'refused' && !outcome.final
    }
    // RBAC may come a moment after the cluster was accepted, and nobody watches it here.
    return again ? { requeueAfterMs: 60_000 } : {}
  }

  #stateOf(csr: CertificateSigningRequest): CsrState {
    const { signerName } = this.#options
    const state = stateOf(csr, {
      signerName,
      requester: requesterOf(csr),
      managedCluster: (name) => this.#clusters.get(name),
      isOurs: this.#options.isOurs,
    })
    const requester = this.#options.requesterOf?.(csr, state)
    return requester ? { ...state, requester } : state
  }

  /** An agent that a person approved holds its cluster as well. Of interest only where others are approved without a person. */
  async #remember(cluster: string, csrs: CertificateSigningRequest[], signal: AbortSignal): Promise<void> {
    if (!this.#options.policy.autoApproval || !this.#clusters.get(cluster)?.spec.hubAcceptsClient) return
    const states = csrs.filter(({ status }) => status?.certificate).map((csr) => this.#stateOf(csr))
    const newest = states.findLast((state) => !malformed(state))
    const agent = newest && agentNameOf(newest)
    if (!newest || !agent || this.#told.get(newest.csr.metadata.uid ?? '') === 'remembered') return
    const holder = await holderOf(this.#options.client, cluster, signal)
    if (holder !== agent) await recordHolder(this.#options.client, cluster, agent, signal)
    this.#told.set(newest.csr.metadata.uid ?? '', 'remembered')
  }

  #knowledge({ requester, cluster }: CsrState, signal: AbortSignal): Parameters<typeof decide>[2] {
    const { client } = this.#options
    return {
      holder: () => holderOf(client, cluster, signal),
      // Without a name, as agents and roles in the field have it: each cluster's role grants it to that cluster's group alone.
      mayRenew: () =>
        mayAccess(
          client,
          requester,
          { verb: 'renew', group: registerGroup, resource: 'managedclusters', subresource: 'clientcertificates' },
          { signal },
        ),
    }
  }

  async #act(state: CsrState, outcome: Outcome, signal: AbortSignal): Promise<void> {
    if (outcome.kind === 'approved') {
      const agent = agentNameOf(state)
      if (outcome.reason === 'AutoApproval') await recordHolder(this.#options.client, state.cluster, agent!, signal)
      await this.#conclude(state.csr, { type: 'Approved', reason: approvedReason, message: outcome.message }, signal)
    }
    if (outcome.kind === 'refused' && outcome.final)
      await this.#conclude(state.csr, { type: 'Denied', reason: outcome.reason, message: outcome.message }, signal)
    this.#tell(state, outcome)
  }

  async #conclude(
    csr: CertificateSigningRequest,
    verdict: Pick<CertificateSigningRequestCondition, 'type' | 'reason' | 'message'>,
    signal: AbortSignal,
  ): Promise<void> {
    const lastUpdateTime = timestamp(this.#options.clock.now())
    const conditions = [...(csr.status?.conditions ?? []), { ...verdict, status: 'True' as const, lastUpdateTime }]
    await this.#options.client
      .of(CertificateSigningRequest)
      .update({ ...csr, status: { ...csr.status, conditions } }, { subresource: 'approval', signal })
  }

  /** Once for each outcome of a request: metric, log, and an event where a person should know. */
  #tell(state: CsrState, outcome: Outcome): void {
    const uid = state.csr.metadata.uid ?? ''
    const said = `${outcome.kind} ${outcome.reason}`
    if (this.#told.get(uid) === said) return
    this.#told.set(uid, said)
    this.#count(outcome.kind)
    const { name } = state.csr.metadata
    this.#options.log.info(`certificate request ${outcome.kind}`, { csr: name, cluster: state.cluster, ...outcome })
    const event = eventFor(outcome)
    if (!event) return
    const note = `${name}: ${outcome.message}`
    this.#options.events.record(
      { ...state.csr, apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' },
      { ...event, action: 'ApproveCertificate', note },
    )
    const { managedCluster } = state
    if (managedCluster && event.type === 'Warning')
      this.#options.events.record(
        { ...managedCluster, apiVersion: 'cluster.open-cluster-management.io/v1', kind: 'ManagedCluster' },
        { ...event, action: 'ApproveCertificate', note },
      )
  }
}

// Nobody needs to hear of each cluster that waits for a person as it should: the cluster itself says so.
const eventFor = (outcome: Outcome): { type: 'Normal' | 'Warning'; reason: string } | undefined => {
  if (outcome.kind === 'refused') return { type: 'Warning', reason: outcome.reason }
  if (outcome.kind === 'approved')
    return {
      type: 'Normal',
      reason: outcome.reason === 'Renewal' ? 'ManagedClusterCSRAutoApproved' : 'ManagedClusterAutoApproved',
    }
  return ['HeldByAnotherAgent', 'HolderUnknown', 'StillConnected'].includes(outcome.reason)
    ? { type: 'Warning', reason: outcome.reason }
    : undefined
}

/** The parts of a cluster that a decision looks at, as one text. */
const judgedBy = (cluster: ManagedCluster): string =>
  [
    cluster.spec.hubAcceptsClient,
    cluster.metadata.deletionTimestamp,
    findCondition(cluster, Joined.type)?.status,
    findCondition(cluster, Available.type)?.status,
  ].join()

const oldestFirst = (a: CertificateSigningRequest, b: CertificateSigningRequest): number =>
  (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? '') ||
  (a.metadata.name ?? '').localeCompare(b.metadata.name ?? '')
