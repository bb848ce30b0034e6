import { label, ManagedClusterAddOn, type ManagedCluster } from '../../api/index.ts'
import {
  apiVersionOf,
  CertificateSigningRequest,
  requesterOf as requesterOnTheApi,
  type CertificateSigningRequestCondition,
  type Requester,
} from '../../kube/index.ts'
import { describeError, timestamp, watching, type Informer, type Reason, type Reconcile } from '../../runtime/index.ts'
import { readSafely } from '../../runtime/pki/index.ts'
import { approvedReason } from '../../registration/contract.ts'
import { malformed, notOurs, waits, wantedBy, type AddOnCsrState } from './csr-checks.ts'
import { usableDefinition } from './definitions.ts'
import { index, ownerKey, type AddOnHub } from './hub.ts'
import { signFor, writeCertificate } from './signing.ts'

export interface ApprovalOptions {
  /** Who asked; the user that the API server has authenticated, unless requests come over another wire. */
  requesterOf?: ((csr: CertificateSigningRequest) => Requester | undefined) | undefined
}

type Outcome = 'approved' | 'denied' | 'waits' | 'signed' | 'failed'

/** Approves the certificate requests of the add-ons that run here, and signs those of their own signers. */
export const approval = (hub: AddOnHub, { requesterOf }: ApprovalOptions = {}): void => {
  const csrs: Informer<CertificateSigningRequest> = hub.manager.informer(CertificateSigningRequest, {
    labelSelector: `${label.clusterName},${label.addOnName}`,
    indexes: { [index.addOn]: (csr) => [ownerKey(csr)] },
  })
  const total = hub.manager.metrics.counter('lanyard_addons_csr_total', 'Certificate requests of add-ons by outcome')
  const told = new Map<string, string>()
  csrs.on({ deleted: ({ metadata }) => told.delete(metadata.uid ?? '') })

  const tell = (state: AddOnCsrState, outcome: Outcome, { reason, message }: Reason): void => {
    const { uid = '', name } = state.csr.metadata
    if (told.get(uid) === `${outcome} ${reason}`) return
    told.set(uid, `${outcome} ${reason}`)
    total.inc({ outcome })
    const about = { csr: name, cluster: state.cluster, addOn: state.addOn, reason, message }
    hub.log.info(`certificate request of an add-on ${outcome}`, about)
    if (outcome === 'approved' || outcome === 'signed' || !state.managedAddOn) return
    hub.events.record(
      { ...state.managedAddOn, apiVersion: apiVersionOf(ManagedClusterAddOn), kind: ManagedClusterAddOn.kind },
      { type: 'Warning', reason, action: 'ApproveCertificate', note: `CSR ${name}: ${message}` },
    )
  }

  const conclude = async (
    { csr }: AddOnCsrState,
    verdict: Pick<CertificateSigningRequestCondition, 'type' | 'reason' | 'message'>,
    signal: AbortSignal,
  ): Promise<CertificateSigningRequest> => {
    const lastUpdateTime = timestamp(hub.clock.now())
    const conditions = [...(csr.status?.conditions ?? []), { ...verdict, status: 'True' as const, lastUpdateTime }]
    const subresource = verdict.type === 'Failed' ? 'status' : 'approval'
    return hub.client
      .of(CertificateSigningRequest)
      .update({ ...csr, status: { ...csr.status, conditions } }, { subresource, signal })
  }

  const sign = async (state: AddOnCsrState, signal: AbortSignal): Promise<void> => {
    const wanted = wantedBy(state)!
    if (wanted.type !== 'customSigner' || state.csr.status?.certificate) return
    const certificate = await signFor(state, wanted, { now: hub.clock.now(), signal })
    await writeCertificate(hub, state.csr, certificate, signal)
    tell(state, 'signed', { reason: 'Signed', message: `signed by ${wanted.authority!.describedAs}` })
  }

  const decide = async (state: AddOnCsrState, signal: AbortSignal): Promise<void> => {
    const has = (type: string): boolean => state.csr.status?.conditions?.some((one) => one.type === type) ?? false
    if (notOurs(state)) return
    const bad = malformed(state)
    if (bad) {
      // Whoever approved it: what is not right is not signed.
      if (has('Approved') && wantedBy(state)!.type === 'kubeClient') return
      await conclude(state, { type: has('Approved') ? 'Failed' : 'Denied', ...bad }, signal)
      tell(state, has('Approved') ? 'failed' : 'denied', bad)
      return
    }
    if (has('Approved')) return sign(state, signal)
    const later = waits(state)
    if (later) return tell(state, 'waits', later)
    const message = `add-on ${state.addOn} of cluster ${state.cluster} asks for its own identity.`
    const approved = await conclude(state, { type: 'Approved', reason: approvedReason, message }, signal)
    tell(state, 'approved', { reason: 'Approved', message })
    await sign({ ...state, csr: approved }, signal)
  }

  const stateOf = (csr: CertificateSigningRequest): AddOnCsrState => {
    const cluster = csr.metadata.labels?.[label.clusterName] ?? ''
    const addOn = csr.metadata.labels?.[label.addOnName] ?? ''
    const managedAddOn = hub.addOns.get(`${cluster}/${addOn}`)
    return {
      csr,
      cluster,
      addOn,
      requester: requesterOf?.(csr) ?? requesterOnTheApi(csr),
      request: readSafely(csr.spec.request),
      managedCluster: hub.clusters.get(cluster),
      managedAddOn,
      // Without the object, still ours by name: it may come a moment later.
      definition: managedAddOn ? usableDefinition(hub, managedAddOn) : hub.defined.get(addOn),
    }
  }

  const reconcile: Reconcile = async (key, signal) => {
    for (const csr of csrs.by(index.addOn, key).filter(isOpen)) {
      const state = stateOf(csr)
      try {
        await decide(state, signal)
      } catch (error) {
        if (signal.aborted) throw error
        tell(state, 'failed', { reason: 'SigningFailed', message: describeError(error) })
        throw error
      }
    }
    return {}
  }

  hub.manager.controller({
    name: 'add-on-csr',
    reconcile,
    watches: [
      watching(csrs, (csr) => [ownerKey(csr)]),
      watching(hub.addOns, undefined, (addOn, old) => !old || driverOf(addOn) !== driverOf(old)),
      watching(
        hub.clusters,
        ({ metadata }) => hub.addOns.list(metadata.name).map(({ metadata: m }) => `${m.namespace}/${m.name}`),
        (cluster, old) => !old || acceptance(cluster) !== acceptance(old),
      ),
    ],
  })
}

/** Not denied, not failed, and without a certificate. */
const isOpen = ({ status }: CertificateSigningRequest): boolean =>
  !status?.certificate && !status?.conditions?.some(({ type }) => type !== 'Approved')

const driverOf = ({ status }: ManagedClusterAddOn): string | undefined =>
  status?.registrations?.find(({ type }) => type === 'kubeClient')?.kubeClient?.driver

const acceptance = ({ spec, metadata }: ManagedCluster): string =>
  `${spec.hubAcceptsClient} ${metadata.deletionTimestamp}`
