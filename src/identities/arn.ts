/** An IAM ARN, taken apart: `arn:<partition>:iam::<account>:<type>/<path and name>`. */
export interface IamArn {
  partition: string
  account: string
  type: string
  /** Path and name, without the first slash. */
  name: string
}

/** Undefined when the text is no IAM ARN. */
export const parseIamArn = (text: string): IamArn | undefined => {
  const [, partition, account, type, name] = /^arn:(aws[a-z-]*):iam::(\d+|aws):([a-z-]+)\/(\S+)$/.exec(text) ?? []
  return partition && account && type && name ? { partition, account, type, name } : undefined
}

/** A managed policy by its ARN, or by its name in the account of the role. */
export const policyArn = (said: string, role: Pick<IamArn, 'partition' | 'account'>): string =>
  said.startsWith('arn:') ? said : `arn:${role.partition}:iam::${role.account}:policy/${said.replace(/^\//, '')}`
