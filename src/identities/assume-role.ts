import { createHash } from 'node:crypto'
import type { AWSClusterRoleIdentity, AWSServiceAccountIdentity } from '../api/index.ts'
import { parseRoleArn, type AssumeRole, type WebIdentityRole } from '../aws/index.ts'
import { policyArn } from './arn.ts'

type RoleSpec = AWSClusterRoleIdentity['spec']
type Common = RoleSpec | AWSServiceAccountIdentity['spec']

const longestSessionName = 64

/**
 * The name of the session where none is given. It names the identity, not the cluster: CloudTrail shows whom to ask, and clusters
 * with the same identity share one session.
 */
export const defaultSessionName = (identity: string): string => {
  const name = `lanyard-${identity}`
  if (name.length <= longestSessionName) return name
  const hash = createHash('sha256').update(identity).digest('hex').slice(0, 8)
  return `${name.slice(0, longestSessionName - 9)}-${hash}`
}

/** How STS is asked for the role of an AWSClusterRoleIdentity. */
export const assumeRole = ({ metadata, spec }: AWSClusterRoleIdentity, region: string): AssumeRole => ({
  ...common(spec, metadata.name!, region),
  ...(spec.externalID ? { externalId: spec.externalID } : {}),
  ...(Object.keys(spec.tags ?? {}).length ? { tags: spec.tags } : {}),
  ...(spec.transitiveTags?.length ? { transitiveTagKeys: spec.transitiveTags } : {}),
})

/** The same for an AWSServiceAccountIdentity, whose session takes its tags from the token. */
export const assumeRoleWithToken = ({ metadata, spec }: AWSServiceAccountIdentity, region: string): WebIdentityRole =>
  common(spec, `${metadata.namespace}.${metadata.name}`, region)

const common = (spec: Common, identity: string, region: string): WebIdentityRole => {
  const role = parseRoleArn(spec.roleARN)
  return {
    arn: spec.roleARN,
    sessionName: spec.sessionName ?? defaultSessionName(identity),
    ...(spec.durationSeconds === undefined ? {} : { durationSeconds: spec.durationSeconds }),
    ...(spec.inlinePolicy ? { inlinePolicy: spec.inlinePolicy } : {}),
    ...(spec.policyARNs?.length ? { policyArns: spec.policyARNs.map((said) => policyArn(said, role)) } : {}),
    region,
  }
}
