/** Registration by client certificate: see docs/drivers/csr.md. */
export { csrAgentDriver, credentialDriver, type CsrAgentOptions } from './agent.ts'
export { Approval, approvedReason, requesterOf, type ApprovalOptions } from './approval.ts'
export type { ApprovalPolicy, Outcome } from './checks.ts'
export { csrHubDriver, type CsrHubOptions } from './hub.ts'
