import { isDeepStrictEqual } from 'node:util'
import {
  failedFor,
  listAt,
  textAt,
  type AwsClient,
  type Credentials,
  type PolicyDocument,
  type QueryValue,
  type XmlElement,
} from '../../../aws/index.ts'
import { policyName, type Wanted } from './wanted.ts'

/** IAM in the hub's account: one call, with credentials that are good now. */
export type Iam = (action: string, parameters: Record<string, QueryValue>) => Promise<XmlElement>

export const iamOf =
  (aws: AwsClient, region: string, credentials: Credentials, signal: AbortSignal): Iam =>
  (action, parameters) =>
    aws.query({ service: 'iam', region, credentials, signal, version: '2010-05-08', action, parameters })

/** Makes the role of a cluster, or puts right what differs of one that is there. Two calls where there is none. */
export const ensureRole = async (iam: Iam, wanted: Wanted, { expected }: { expected: boolean }): Promise<void> => {
  if (expected) {
    const found = await unlessMissing(iam('GetRole', { RoleName: wanted.roleName }))
    if (found) return repair(iam, wanted, found)
  }
  const { roleName: RoleName, trust, tags } = wanted
  const Tags = tagList(tags)
  try {
    await iam('CreateRole', { RoleName, AssumeRolePolicyDocument: JSON.stringify(trust), ...(Tags.length && { Tags }) })
  } catch (error) {
    if (!failedFor(error, 'AlreadyExists')) throw error
    return repair(iam, wanted, await iam('GetRole', { RoleName }))
  }
  await putPolicy(iam, wanted)
}

const repair = async (iam: Iam, wanted: Wanted, found: XmlElement): Promise<void> => {
  const { roleName: RoleName, trust, tags } = wanted
  const has = documentIn(textAt(found, 'GetRoleResult', 'Role', 'AssumeRolePolicyDocument'))
  if (!sameDocument(has, trust))
    await iam('UpdateAssumeRolePolicy', { RoleName, PolicyDocument: JSON.stringify(trust) })
  const present = new Map(
    listAt(found, 'GetRoleResult', 'Role', 'Tags').map((tag) => [textAt(tag, 'Key'), textAt(tag, 'Value') ?? '']),
  )
  const Tags = tagList(tags).filter(({ Key, Value }) => present.get(Key) !== Value)
  if (Tags.length > 0) await iam('TagRole', { RoleName, Tags })
  const policy = await unlessMissing(iam('GetRolePolicy', { RoleName, PolicyName: policyName }))
  const document = policy && documentIn(textAt(policy, 'GetRolePolicyResult', 'PolicyDocument'))
  if (!document || !sameDocument(document, wanted.policy)) await putPolicy(iam, wanted)
}

const putPolicy = (iam: Iam, { roleName, policy }: Wanted): Promise<XmlElement> =>
  iam('PutRolePolicy', { RoleName: roleName, PolicyName: policyName, PolicyDocument: JSON.stringify(policy) })

const tagList = (tags: Readonly<Record<string, string>>) => Object.entries(tags).map(([Key, Value]) => ({ Key, Value }))

/** Removes a role with everything that hangs on it, whoever put it there. What is gone already is as good. */
export const removeRole = async (iam: Iam, RoleName: string): Promise<void> => {
  const list = async (action: string, what: string): Promise<XmlElement[]> => {
    const answer = await unlessMissing(iam(action, { RoleName }))
    return answer ? listAt(answer, `${action}Result`, what) : []
  }
  for (const policy of await list('ListAttachedRolePolicies', 'AttachedPolicies'))
    await unlessMissing(iam('DetachRolePolicy', { RoleName, PolicyArn: textAt(policy, 'PolicyArn')! }))
  for (const { text: PolicyName } of await list('ListRolePolicies', 'PolicyNames'))
    await unlessMissing(iam('DeleteRolePolicy', { RoleName, PolicyName }))
  await unlessMissing(iam('DeleteRole', { RoleName }))
}

/** Undefined where AWS knows no such thing. */
export const unlessMissing = async <T>(call: Promise<T>): Promise<T | undefined> => {
  try {
    return await call
  } catch (error) {
    if (failedFor(error, 'NotFound')) return undefined
    throw error
  }
}

/** IAM answers documents URL-encoded. */
const documentIn = (text = ''): unknown => {
  try {
    return JSON.parse(text.startsWith('%') ? decodeURIComponent(text) : text) as unknown
  } catch {
    return undefined
  }
}

/** Whether two policies say the same: IAM is free to write one value as a list, and people to write keys in any order. */
export const sameDocument = (a: unknown, b: PolicyDocument): boolean => isDeepStrictEqual(normal(a), normal(b))

const normal = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.length === 1 ? normal(value[0]) : value.map(normal)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, normal(inner)]))
}
