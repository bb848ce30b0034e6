import type { AwsClient, CallTarget } from './client.ts'
import type { Credentials } from './credentials.ts'
import { AwsError } from './errors.ts'
import type { AssumeRole, WebIdentityRole } from './recipe.ts'
import { at, textAt, type XmlElement } from './xml.ts'

/** Who AWS says one is. */
export interface Caller {
  account: string
  arn: string
  userId: string
}

const version = '2011-06-15'
const sts = (region: string, signal: AbortSignal | undefined, credentials?: Credentials): CallTarget => ({
  service: 'sts',
  region,
  signal,
  credentials,
})

/** STS AssumeRole. Everything that `role` holds is sent. */
export const assumeRole = async (
  aws: AwsClient,
  source: Credentials,
  role: AssumeRole,
  signal?: AbortSignal,
): Promise<Credentials> => {
  const answer = await aws.query({
    ...sts(role.region, signal, source),
    version,
    action: 'AssumeRole',
    parameters: {
      ...sessionParameters(role),
      ExternalId: role.externalId,
      Tags: Object.entries(role.tags ?? {}).map(([Key, Value]) => ({ Key, Value })),
      TransitiveTagKeys: role.transitiveTagKeys,
    },
  })
  return sessionIn(answer, 'AssumeRole')
}

/** STS AssumeRoleWithWebIdentity: the token is the proof, so nothing is signed. */
export const assumeRoleWithWebIdentity = async (
  aws: AwsClient,
  token: string,
  role: WebIdentityRole,
  signal?: AbortSignal,
): Promise<Credentials> => {
  const answer = await aws.query({
    ...sts(role.region, signal),
    version,
    action: 'AssumeRoleWithWebIdentity',
    parameters: { ...sessionParameters(role), WebIdentityToken: token },
  })
  return sessionIn(answer, 'AssumeRoleWithWebIdentity')
}

/** STS GetCallerIdentity: needs no permission, so it tells who one is even where one may do nothing. */
export const getCallerIdentity = async (
  aws: AwsClient,
  credentials: Credentials,
  region: string,
  signal?: AbortSignal,
): Promise<Caller> => {
  const answer = await aws.query({ ...sts(region, signal, credentials), version, action: 'GetCallerIdentity' })
  const result = at(answer, 'GetCallerIdentityResult')
  return {
    account: required(result, 'GetCallerIdentity', 'Account'),
    arn: required(result, 'GetCallerIdentity', 'Arn'),
    userId: required(result, 'GetCallerIdentity', 'UserId'),
  }
}

const sessionParameters = (role: WebIdentityRole) => ({
  RoleArn: role.arn,
  RoleSessionName: role.sessionName,
  DurationSeconds: role.durationSeconds,
  Policy: role.inlinePolicy,
  PolicyArns: role.policyArns?.map((arn) => ({ arn })),
})

const sessionIn = (answer: XmlElement, action: string): Credentials => {
  const result = at(answer, `${action}Result`)
  const expiration = Date.parse(required(result, action, 'Credentials', 'Expiration'))
  const arn = required(result, action, 'AssumedRoleUser', 'Arn')
  return {
    accessKeyId: required(result, action, 'Credentials', 'AccessKeyId'),
    secretAccessKey: required(result, action, 'Credentials', 'SecretAccessKey'),
    sessionToken: required(result, action, 'Credentials', 'SessionToken'),
    expiration: Number.isNaN(expiration) ? missing(action, 'Expiration') : expiration,
    accountId: arn.split(':')[4],
    arn,
    userId: required(result, action, 'AssumedRoleUser', 'AssumedRoleId'),
  }
}

const required = (result: XmlElement | undefined, action: string, ...path: string[]): string =>
  (result && textAt(result, ...path)) || missing(action, path.join('.'))

const missing = (action: string, what: string): never => {
  throw new AwsError({ reason: 'Unavailable', message: `sts ${action}: the answer has no readable ${what}` })
}
