/** Registration by client certificate: see docs/drivers/csr.md. */
export { csrAgentDriver, credentialDriver, type CsrAgentOptions } from './agent.ts'
export { Approval, type ApprovalOptions } from './approval.ts'
export { isDecided, isRenewal, stateOf, type ApprovalPolicy, type CsrState, type Outcome } from './checks.ts'
export { agentNameOf } from './decision.ts'
export { malformed } from './form.ts'
export { holderAnnotation, holderOf } from './holder.ts'
export { csrHubDriver, removeUnissued, type CsrHubOptions } from './hub.ts'
