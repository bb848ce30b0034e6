/**
 * Registration by AWS IAM: see docs/drivers/aws-irsa.md. A tour:
 *
 * A cluster claims an ARN (claim.ts). What gives it access follows from that (wanted.ts): a role (iam.ts), and a mapping in
 * `aws-auth` (map-roles.ts, aws-auth.ts) or an access entry (access-entry.ts). `newGrants` makes and removes it and writes it
 * down first (record.ts); the hub's controller (hub.ts, grant-work.ts) and `clusteradm accept` both use it. pattern.ts decides which ARNs
 * need no person. The agent (agent.ts) waits to be accepted (acceptance.ts) and mints its tokens itself.
 */
export { awsIrsaAgentDriver, type AwsIrsaAgentOptions } from './agent.ts'
export { claimsAnArn, claimOf, type Claim } from './claim.ts'
export { newGrants, type GrantOptions, type Grants, type Outlook } from './grants.ts'
export { awsIrsaHubDriver } from './hub.ts'
export { accessOf, awsFrom, parseTags, type AwsIrsaHubOptions } from './hub-options.ts'
export { parsePattern, type Pattern } from './pattern.ts'
export { isGoing, recordSelector, type GrantRecord } from './record.ts'
export { digestOf, mappingOf, policyName, type Access, type Mapping, type Wanted } from './wanted.ts'
