import type { AWSClusterRoleIdentity, AWSServiceAccountIdentity } from '../api/index.ts'
import type { Cause } from '../runtime/webhook/index.ts'
import { parseIamArn, type IamArn } from './arn.ts'

type Spec = AWSClusterRoleIdentity['spec'] | AWSServiceAccountIdentity['spec']

/** What AWS would refuse in the fields of a role, beyond what the schema can say. */
export const roleFaults = (spec: Spec): Cause[] => {
  const role = parseIamArn(spec.roleARN)
  if (role?.type !== 'role')
    return [{ field: 'spec.roleARN', message: `is not the ARN of a role: write arn:aws:iam::<account>:role/<name>` }]
  return [
    ...patternFaults(spec),
    ...inlinePolicyFaults(spec.inlinePolicy),
    ...policyFaults(spec.policyARNs ?? [], role),
    ...tagFaults(spec),
  ]
}

/** What AWS will not take as it stands, and examples have all the same. */
export const roleWarnings = (spec: Spec): string[] => {
  const account = parseIamArn(spec.roleARN)?.account ?? ''
  return /^\d{12}$/.test(account)
    ? []
    : [`spec.roleARN: account ${account} has ${account.length} digits and AWS accounts have 12: AWS will refuse it`]
}

// The schema has the same patterns; it is not ours on a cluster where the CRDs are of another provider.
const patternFaults = (spec: Spec): Cause[] => {
  const { sessionName, durationSeconds } = spec
  const externalID = 'externalID' in spec ? spec.externalID : undefined
  return [
    ...(sessionName === undefined || /^[\w+=,.@-]{2,64}$/.test(sessionName)
      ? []
      : [{ field: 'spec.sessionName', message: 'has 2 to 64 letters, digits and _+=,.@- only' }]),
    ...(externalID === undefined || /^[\w+=,.@:/-]{2,1224}$/.test(externalID)
      ? []
      : [{ field: 'spec.externalID', message: 'has 2 to 1224 letters, digits and _+=,.@:/- only' }]),
    ...(durationSeconds === undefined || (durationSeconds >= 900 && durationSeconds <= 43_200)
      ? []
      : [
          {
            field: 'spec.durationSeconds',
            message: 'is between 900 and 43200: a session lasts 15 minutes to 12 hours',
          },
        ]),
  ]
}

const inlinePolicyFaults = (text: string | undefined): Cause[] => {
  if (text === undefined || text === '') return []
  const field = 'spec.inlinePolicy'
  if (text.length > 2048)
    return [{ field, message: `has ${text.length} characters and STS takes 2048: use policyARNs` }]
  let policy: unknown
  try {
    policy = JSON.parse(text)
  } catch (error) {
    return [{ field, message: `is not JSON: ${(error as Error).message}` }]
  }
  if (typeof policy !== 'object' || policy === null || Array.isArray(policy))
    return [{ field, message: 'is not a policy: write {"Version":"2012-10-17","Statement":[…]}' }]
  const { Version, Statement } = policy as { Version?: unknown; Statement?: unknown }
  if (Version !== '2012-10-17' && Version !== '2008-10-17')
    return [{ field, message: 'has no "Version": write "2012-10-17"' }]
  const statements = Array.isArray(Statement) ? Statement : [Statement]
  return statements.flatMap((statement: unknown, i) => {
    const effect = (statement as { Effect?: unknown } | null | undefined)?.Effect
    return effect === 'Allow' || effect === 'Deny'
      ? []
      : [{ field, message: `Statement ${i} has no "Effect": write "Allow" or "Deny"` }]
  })
}

const policyFaults = (policies: readonly string[], role: IamArn): Cause[] => [
  ...(policies.length > 10 ? [{ field: 'spec.policyARNs', message: `has ${policies.length} and STS takes 10` }] : []),
  ...policies.flatMap((said, i): Cause[] => {
    const field = `spec.policyARNs[${i}]`
    if (!said.startsWith('arn:'))
      return /^\/?([\w+=,.@-]+\/)*[\w+=,.@-]{1,128}$/.test(said)
        ? []
        : [{ field, message: `${JSON.stringify(said.slice(0, 200))} is neither an ARN nor the name of a policy` }]
    const policy = parseIamArn(said)
    if (policy?.type !== 'policy')
      return [{ field, message: 'is not the ARN of a policy: write arn:aws:iam::<account>:policy/<name>' }]
    if (policy.partition !== role.partition)
      return [{ field, message: `is of partition ${policy.partition}, and the role of ${role.partition}` }]
    return policy.account === 'aws' || policy.account === role.account
      ? []
      : [
          {
            field,
            message: `is of account ${policy.account}, and the role of ${role.account}: session policies must be in the account of the role`,
          },
        ]
  }),
]

/** What keys and values of tags of sessions, and of load balancers, are made of. Other things take more. */
export const tagText = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u

const tagFaults = (spec: Spec): Cause[] => {
  const tags = Object.entries(spec.tags ?? {})
  const keys = new Set(tags.map(([key]) => key))
  const lower = Map.groupBy(keys, (key) => key.toLowerCase())
  return [
    ...tags.flatMap(([key, value]) => [
      ...(tagText.test(key)
        ? []
        : [{ field: `spec.tags[${key}]`, message: 'a tag key has letters, digits, spaces and _.:/=+-@ only' }]),
      ...(tagText.test(value)
        ? []
        : [{ field: `spec.tags[${key}]`, message: 'a tag value has letters, digits, spaces and _.:/=+-@ only' }]),
    ]),
    ...[...lower.values()].flatMap((same) =>
      same.length > 1 ? [{ field: 'spec.tags', message: `${same.join(' and ')} are one key to STS: keep one` }] : [],
    ),
    ...(spec.transitiveTags ?? []).flatMap((key, i) =>
      keys.has(key)
        ? []
        : [
            {
              field: `spec.transitiveTags[${i}]`,
              message: `${key} is none of spec.tags: only a tag of this session can be passed on`,
            },
          ],
    ),
  ]
}
