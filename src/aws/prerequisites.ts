import type { AwsClient } from './client.ts'
import type { EksCluster } from './arn.ts'
import type { Credentials } from './credentials.ts'
import { failedFor } from './errors.ts'
import { creatorRoleName, managedRoleName, pairTags, type ClusterPair } from './names.ts'
import {
  creatorAccessPolicy,
  creatorTrustPolicy,
  managedAccessPolicy,
  managedTrustPolicy,
  type PolicyDocument,
  type Statement,
} from './policies.ts'
import { listAt, textAt, type XmlElement } from './xml.ts'

/** A role that has to be there before Lanyard is. */
export interface RequiredRole {
  partition: string
  account: string
  name: string
  trust: PolicyDocument
  /** The name of the inline policy that holds `access`. */
  policyName: string
  access: PolicyDocument
  tags: Record<string, string>
}

/** What a managed cluster needs in its account before it joins. */
export const managedPrerequisite = (
  pair: ClusterPair,
  options: { oidcProvider: string; klusterlet?: string },
): RequiredRole => ({
  partition: pair.managed.partition,
  account: pair.managed.account,
  name: managedRoleName(pair),
  trust: managedTrustPolicy(pair, options),
  policyName: 'assume-hub-role',
  access: managedAccessPolicy(pair),
  tags: pairTags(pair),
})

/** What a hub that approves clusters by itself needs in its account. */
export const hubPrerequisite = (
  hub: EksCluster,
  options: { oidcProvider: string; accessEntries?: boolean; tags?: boolean },
): RequiredRole => ({
  partition: hub.partition,
  account: hub.account,
  name: creatorRoleName(hub),
  trust: creatorTrustPolicy(hub, options),
  policyName: 'create-managed-cluster-identities',
  access: creatorAccessPolicy(hub, options),
  tags: {},
})

/** As data, for programs. */
export const asJson = ({ partition, account, name, ...role }: RequiredRole): string =>
  JSON.stringify({ role: `arn:${partition}:iam::${account}:role/${name}`, ...role }, undefined, 2)

/** As commands of the AWS CLI. */
export const asCommands = (role: RequiredRole): string => {
  const tags = Object.entries(role.tags).map(([Key, Value]) => ({ Key, Value }))
  const trust = quoted(JSON.stringify(role.trust))
  const tagging = tags.length ? ` --tags ${quoted(JSON.stringify(tags))}` : ''
  return [
    `aws iam create-role --role-name ${role.name} --assume-role-policy-document ${trust}${tagging}`,
    `aws iam put-role-policy --role-name ${role.name} --policy-name ${role.policyName} --policy-document ${quoted(JSON.stringify(role.access))}`,
    '',
  ].join('\n')
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** As Terraform. */
export const asTerraform = (role: RequiredRole): string => {
  const id = role.name.replaceAll(/[^\w-]/g, '_')
  return `resource "aws_iam_role" "${id}" {
  name               = ${hcl(role.name)}
  assume_role_policy = jsonencode(${indented(hcl(role.trust))})
  tags               = ${indented(hcl(role.tags))}
}

resource "aws_iam_role_policy" "${id}" {
  name   = ${hcl(role.policyName)}
  role   = aws_iam_role.${id}.id
  policy = jsonencode(${indented(hcl(role.access))})
}
`
}

// JSON is an expression of HCL, but for the two ways in which HCL's strings begin a template.
const hcl = (value: unknown): string =>
  JSON.stringify(value, undefined, 2).replaceAll(/[$%]\{/g, (open) => open[0] + open)
const indented = (text: string): string => text.replaceAll('\n', '\n  ')

/** As a template of CloudFormation. */
export const asCloudFormation = (role: RequiredRole): string =>
  JSON.stringify(
    {
      AWSTemplateFormatVersion: '2010-09-09',
      Resources: {
        Role: {
          Type: 'AWS::IAM::Role',
          Properties: {
            RoleName: role.name,
            AssumeRolePolicyDocument: role.trust,
            Policies: [{ PolicyName: role.policyName, PolicyDocument: role.access }],
            Tags: Object.entries(role.tags).map(([Key, Value]) => ({ Key, Value })),
          },
        },
      },
    },
    undefined,
    2,
  )

/** What of a role is missing in its account, or differs; nothing when all is as it should be. */
export const missingFrom = async (
  aws: AwsClient,
  credentials: Credentials,
  role: RequiredRole,
  region: string,
): Promise<string[]> => {
  const iam = (action: string, parameters: Record<string, string>): Promise<XmlElement> =>
    aws.query({ service: 'iam', region, credentials, version: '2010-05-08', action, parameters })
  const RoleName = role.name
  let found: XmlElement
  try {
    found = await iam('GetRole', { RoleName })
  } catch (error) {
    if (failedFor(error, 'NotFound')) return [`account ${role.account} has no role ${role.name}`]
    throw error
  }
  const at = (name: string): XmlElement[] => listAt(found, 'GetRoleResult', 'Role', name)
  const tags = new Map(at('Tags').map((tag) => [textAt(tag, 'Key'), textAt(tag, 'Value')]))
  const trust = documentIn(found, 'GetRoleResult', 'Role', 'AssumeRolePolicyDocument')
  const policies = await policiesOf(iam, RoleName)
  const lacks = (wanted: Statement, among: PolicyDocument[]): boolean =>
    !among.some(({ Statement }) => [Statement].flat().some((statement) => normal(statement) === normal(wanted)))
  return [
    ...role.trust.Statement.filter((wanted) => lacks(wanted, [trust])).map(
      (wanted) => `the trust policy of ${role.name} has no statement ${JSON.stringify(wanted)}`,
    ),
    ...role.access.Statement.filter((wanted) => lacks(wanted, policies)).map(
      (wanted) => `no policy of ${role.name} has a statement ${JSON.stringify(wanted)}`,
    ),
    ...Object.entries(role.tags)
      .filter(([key, value]) => tags.get(key) !== value)
      .map(([key, value]) => `${role.name} has the tag ${key}=${tags.get(key) ?? ''} and not ${key}=${value}`),
  ]
}

type Iam = (action: string, parameters: Record<string, string>) => Promise<XmlElement>

/** All policies of a role: its own and those attached to it. */
const policiesOf = async (iam: Iam, RoleName: string): Promise<PolicyDocument[]> => {
  const own = listAt(await iam('ListRolePolicies', { RoleName }), 'ListRolePoliciesResult', 'PolicyNames')
  const attached = listAt(
    await iam('ListAttachedRolePolicies', { RoleName }),
    'ListAttachedRolePoliciesResult',
    'AttachedPolicies',
  )
  return Promise.all([
    ...own.map(async ({ text: PolicyName }) =>
      documentIn(await iam('GetRolePolicy', { RoleName, PolicyName }), 'GetRolePolicyResult', 'PolicyDocument'),
    ),
    ...attached.map(async (policy) => {
      const PolicyArn = textAt(policy, 'PolicyArn')!
      const VersionId = textAt(await iam('GetPolicy', { PolicyArn }), 'GetPolicyResult', 'Policy', 'DefaultVersionId')!
      const version = await iam('GetPolicyVersion', { PolicyArn, VersionId })
      return documentIn(version, 'GetPolicyVersionResult', 'PolicyVersion', 'Document')
    }),
  ])
}

/** IAM answers documents URL-encoded. */
const documentIn = (answer: XmlElement, ...path: string[]): PolicyDocument => {
  const text = textAt(answer, ...path) ?? ''
  return JSON.parse(text.startsWith('%') ? decodeURIComponent(text) : text || '{"Statement":[]}') as PolicyDocument
}

/** A statement as text that does not depend on how it was written: `"a"` or `["a"]`, in which order, with which Sid. */
const normal = ({ ...statement }: Statement & { Sid?: string }): string => {
  delete statement.Sid
  const sorted = (value: unknown, list: boolean): unknown => {
    if (typeof value !== 'object' || value === null) return list ? [value] : value
    if (Array.isArray(value)) return value.map(String).toSorted()
    const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
    return entries.map(([key, inner]) => [key, sorted(inner, key !== 'Effect')])
  }
  return JSON.stringify(sorted(statement, false))
}
