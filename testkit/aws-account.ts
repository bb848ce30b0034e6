import {
  textAt,
  type AwsClient,
  type Credentials,
  type PolicyDocument,
  type QueryValue,
  type XmlElement,
} from '../src/aws/index.ts'

/** An account of the local AWS, as its root user sees it. */
export interface AwsAccount {
  id: string
  /** The keys of the root user. */
  root: Credentials
  /** A role, with what it may do; answers its ARN. */
  role: (
    name: string,
    trust: PolicyDocument,
    more?: { may?: PolicyDocument; tags?: Record<string, string> },
  ) => Promise<string>
  /** A user with an access key. */
  user: (name: string, may?: PolicyDocument) => Promise<Credentials>
  /** A managed policy; answers its ARN. */
  policy: (name: string, document: PolicyDocument) => Promise<string>
  iam: (action: string, parameters: Record<string, QueryValue>) => Promise<XmlElement>
}

/** An account comes to be by its first use. */
export const awsAccount = (aws: AwsClient, id: string): AwsAccount => {
  const root = { accessKeyId: id, secretAccessKey: 'any' }
  const iam: AwsAccount['iam'] = (action, parameters) =>
    aws.query({ service: 'iam', region: 'us-east-1', credentials: root, version: '2010-05-08', action, parameters })
  const may = async (on: 'Role' | 'User', name: string, document: PolicyDocument | undefined): Promise<void> => {
    if (!document) return
    await iam(`Put${on}Policy`, { [`${on}Name`]: name, PolicyName: 'may', PolicyDocument: JSON.stringify(document) })
  }
  return {
    id,
    root,
    iam,
    role: async (name, trust, more = {}) => {
      const Tags = Object.entries(more.tags ?? {}).map(([Key, Value]) => ({ Key, Value }))
      await iam('CreateRole', { RoleName: name, AssumeRolePolicyDocument: JSON.stringify(trust), Tags })
      await may('Role', name, more.may)
      return `arn:aws:iam::${id}:role/${name}`
    },
    user: async (name, document) => {
      await iam('CreateUser', { UserName: name })
      await may('User', name, document)
      const key = await iam('CreateAccessKey', { UserName: name })
      const of = (part: string): string => textAt(key, 'CreateAccessKeyResult', 'AccessKey', part)!
      return { accessKeyId: of('AccessKeyId'), secretAccessKey: of('SecretAccessKey') }
    },
    policy: async (name, document) => {
      await iam('CreatePolicy', { PolicyName: name, PolicyDocument: JSON.stringify(document) })
      return `arn:aws:iam::${id}:policy/${name}`
    },
  }
}

/** A policy of statements that allow. */
export const allowing = (...statements: Omit<PolicyDocument['Statement'][number], 'Effect'>[]): PolicyDocument => ({
  Version: '2012-10-17',
  Statement: statements.map((statement) => ({ Effect: 'Allow', ...statement })),
})
