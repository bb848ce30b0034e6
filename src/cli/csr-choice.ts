import { requesterOf, type CertificateSigningRequest } from '../kube/index.ts'
import { bootstrapUser, hubAccount as account, namespace } from '../operator/contract.ts'
import { agentNameOf, isRenewal, malformed, requesterBehind, stateOf } from '../registration/drivers/index.ts'
import { signer } from '../api/index.ts'

/** What a person may say about whose requests to approve. */
export interface ChoiceOptions {
  cluster: string
  /** Only requests by these users. */
  requesters: readonly string[]
  /** Only these requests. */
  names: readonly string[]
  /** Whoever made them. */
  anybody: boolean
  /** The agent that the hub has given this cluster to. */
  holder: string | undefined
}

/** Requests to approve, and those that are not, with why. */
export interface Choice {
  approve: CertificateSigningRequest[]
  refused: { name: string; why: string }[]
  /** A question only the person can answer; nothing is approved. */
  ambiguous?: string
}

const hubAccount = `system:serviceaccount:${namespace.hub}:grpc-server-sa`

/** Whether somebody made it who is there to let new clusters in. */
const isBootstrap = (username: string): boolean =>
  username === bootstrapUser || username === hubAccount || /^system:bootstrap:[a-z0-9]{6}$/.test(username)

/** Whether a request is for the certificate of a cluster: of the API server's signer, or of the gRPC endpoint's. */
export const isForCluster = ({ spec }: CertificateSigningRequest): boolean =>
  spec.signerName === signer.kubeApiServerClient || spec.signerName === signer.grpc

/** The endpoint makes requests in the hub's name, and writes down who asked: that is believed of the hub's own account alone. */
const behindEndpoint = requesterBehind(`system:serviceaccount:${namespace.hub}:${account.hub}`)

/**
 * Which open requests of a cluster are its own. A label is written by whoever makes a request: what counts is what it asks
 * for and who the API server says has made it.
 */
export const chooseRequests = (open: readonly CertificateSigningRequest[], options: ChoiceOptions): Choice => {
  const refused: Choice['refused'] = []
  const fit: { csr: CertificateSigningRequest; agent: string }[] = []
  for (const csr of open) {
    const verdict = judge(csr, options)
    if ('why' in verdict) refused.push({ name: csr.metadata.name!, why: verdict.why })
    else fit.push({ csr, agent: verdict.agent })
  }
  const agents = [...new Set(fit.map(({ agent }) => agent))]
  const named = options.names.length > 0
  if (agents.length > 1 && !named) {
    const list = fit.map(({ csr, agent }) => `${csr.metadata.name} (agent ${agent}, made by ${csr.spec.username})`)
    return { approve: [], refused, ambiguous: `several agents ask for cluster ${options.cluster}: ${list.join(', ')}` }
  }
  const stranger = agents.find((agent) => options.holder !== undefined && agent !== options.holder)
  if (stranger && !named)
    return {
      approve: [],
      refused,
      ambiguous: `cluster ${options.cluster} belongs to agent ${options.holder}, and agent ${stranger} asks for it now: ${fit[0]!.csr.metadata.name}`,
    }
  return { approve: fit.map(({ csr }) => csr), refused }
}

const judge = (csr: CertificateSigningRequest, options: ChoiceOptions): { why: string } | { agent: string } => {
  const { signerName } = csr.spec
  const requester = signerName === signer.grpc ? behindEndpoint(csr) : requesterOf(csr)
  const state = stateOf(csr, { signerName, requester, managedCluster: () => undefined })
  const bad = malformed(state)
  if (bad) return { why: bad.message }
  const { names, requesters, anybody } = options
  if (names.length > 0 && !names.includes(csr.metadata.name!)) return { why: 'it is not among those of --csr' }
  if (requesters.length > 0 && !requesters.includes(requester.username))
    return { why: `it was made by ${requester.username}, who is not among --requesters` }
  const known = anybody || names.length > 0 || requesters.length > 0 || isRenewal(state)
  if (!known && !isBootstrap(requester.username))
    return {
      why: `it was made by ${requester.username}, which is no account for joining; name it with --requesters to trust it`,
    }
  return { agent: agentNameOf(state)! }
}
