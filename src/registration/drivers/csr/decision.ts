import type { Reason } from '../../../runtime/index.ts'
import { RequestError } from '../../../runtime/pki/index.ts'
import {
  bootstrapWaits,
  isRenewal,
  needsPerson,
  notOurs,
  renewalRefused,
  type ApprovalPolicy,
  type CsrState,
  type Outcome,
} from './checks.ts'
import { agentOf, malformed } from './form.ts'

/** What only the API server knows, asked when everything else has been found right. */
export interface Knowledge {
  /** Whether the requester may renew certificates of managed clusters (a SubjectAccessReview). */
  mayRenew(): Promise<boolean>
  /** The agent that the cluster's certificates were issued to; undefined when there was none. */
  holder(): Promise<string | undefined>
}

/** The policy: not ours, malformed, a renewal, or a first request, in this order. */
export const decide = async (state: CsrState, policy: ApprovalPolicy, ask: Knowledge): Promise<Outcome> => {
  const ignored = notOurs(state)
  if (ignored) return { kind: 'ignored', ...ignored }
  const bad = malformed(state)
  if (bad) return { kind: 'refused', final: true, ...bad }
  return isRenewal(state) ? decideRenewal(state, ask) : decideBootstrap(state, policy, ask)
}

const decideRenewal = async (state: CsrState, ask: Knowledge): Promise<Outcome> => {
  const refused = renewalRefused(state) ?? (!(await ask.mayRenew()) && notPermitted(state))
  if (refused) return { kind: 'refused', final: false, ...refused }
  const message = `${state.requester.username} renews its own certificate, and may do so by SubjectAccessReview.`
  return { kind: 'approved', reason: 'Renewal', message }
}

const notPermitted = ({ requester, cluster }: CsrState): Reason => ({
  reason: 'NotPermitted',
  message: `${requester.username} may not renew certificates of cluster ${cluster}: its groups lack the verb renew on managedclusters/clientcertificates`,
})

const decideBootstrap = async (state: CsrState, policy: ApprovalPolicy, ask: Knowledge): Promise<Outcome> => {
  const person = needsPerson({ ...state, policy })
  if (person) return { kind: 'waits', ...person }
  const waits = bootstrapWaits({ ...state, policy, agent: agentNameOf(state)!, holder: await ask.holder() })
  if (waits) return { kind: 'waits', ...waits }
  const message = `${state.requester.username} is among the identities whose clusters are approved automatically.`
  return { kind: 'approved', reason: 'AutoApproval', message }
}

/** The agent that a request is for; undefined when it has no such form. */
export const agentNameOf = ({ request, cluster }: CsrState): string | undefined =>
  request instanceof RequestError ? undefined : agentOf(cluster, request.subject.commonName)

/** Whether this is a well-formed first request by somebody whose clusters need no person: what auto-acceptance relies on. */
export const vouches = (state: CsrState, policy: ApprovalPolicy): boolean =>
  !state.csr.status?.conditions?.some(({ type }) => type === 'Denied') &&
  !notOurs({ ...state, csr: { ...state.csr, status: {} } }) &&
  !malformed(state) &&
  !isRenewal(state) &&
  !needsPerson({ ...state, policy })
