import { AwsInputError } from './errors.ts'

/** `arn:partition:service:region:account:resource`; region and account may be empty. */
export interface Arn {
  partition: string
  service: string
  region: string
  account: string
  resource: string
}

/** What an ARN says about an EKS cluster. */
export interface EksCluster {
  partition: string
  region: string
  account: string
  name: string
}

/** The partitions of AWS: how their regions begin and where their names end. The one without a beginning is the rest. */
const partitions: { name: string; regions: string; suffix: string; iam: string }[] = [
  { name: 'aws-cn', regions: 'cn-', suffix: 'amazonaws.com.cn', iam: 'cn-north-1' },
  { name: 'aws-us-gov', regions: 'us-gov-', suffix: 'amazonaws.com', iam: 'us-gov-west-1' },
  { name: 'aws-iso', regions: 'us-iso-', suffix: 'c2s.ic.gov', iam: 'us-iso-east-1' },
  { name: 'aws-iso-b', regions: 'us-isob-', suffix: 'sc2s.sgov.gov', iam: 'us-isob-east-1' },
  { name: 'aws-iso-e', regions: 'eu-isoe-', suffix: 'cloud.adc-e.uk', iam: 'eu-isoe-west-1' },
  { name: 'aws-iso-f', regions: 'us-isof-', suffix: 'csp.hci.ic.gov', iam: 'us-isof-south-1' },
  { name: 'aws-eusc', regions: 'eusc-', suffix: 'amazonaws.eu', iam: 'eusc-de-east-1' },
  { name: 'aws', regions: '', suffix: 'amazonaws.com', iam: 'us-east-1' },
]

/** The partition that a region is in. */
export const partitionOf = (region: string): string => partitionOfRegion(region).name

/** What the names of a region's endpoints end with. */
export const dnsSuffixOf = (region: string): string => partitionOfRegion(region).suffix

/** Where the partition of a region has its IAM, which knows no regions but is signed for one. */
export const iamRegionOf = (region: string): string => partitionOfRegion(region).iam

const partitionOfRegion = (region: string) => partitions.find(({ regions }) => region.startsWith(regions))!

/** `eu-west-1`, `us-gov-east-1`, `eusc-de-east-1`: goes into host names, so nothing else may. */
const regionPattern = /^[a-z]{2,4}(-[a-z]+)+-\d{1,2}$/

/** The region, if it is written as one. */
export const checkedRegion = (region: string): string => {
  if (regionPattern.test(region)) return region
  throw new AwsInputError(`${JSON.stringify(region)} is not a region`, 'write one such as eu-west-1')
}

/** Reads an ARN strictly; the error names the part that is wrong. */
export const parseArn = (text: string): Arn => {
  const wrong = (what: string): AwsInputError =>
    new AwsInputError(
      `${JSON.stringify(text.slice(0, 200))} is not an ARN: ${what}`,
      'write arn:partition:service:region:account:resource',
    )
  const [prefix, partition = '', service = '', region = '', account = '', ...rest] = text.split(':')
  const resource = rest.join(':')
  if (prefix !== 'arn') throw wrong('it does not begin with "arn:"')
  if (rest.length === 0) throw wrong('it has fewer than six parts')
  if (!partitions.some(({ name }) => name === partition)) throw wrong(`there is no partition ${quoted(partition)}`)
  if (!/^[a-z0-9-]+$/.test(service)) throw wrong(`the service ${quoted(service)} is not a name`)
  if (region && !regionPattern.test(region)) throw wrong(`the region ${quoted(region)} is not one`)
  if (region && partitionOf(region) !== partition)
    throw wrong(`the region ${region} is in partition ${partitionOf(region)}, not in ${partition}`)
  if (account && !/^\d{12}$/.test(account)) throw wrong(`the account ${quoted(account)} is not twelve digits`)
  if (!/^[\x21-\x7e]+$/.test(resource)) throw wrong('the resource is missing, or has characters that no resource has')
  return { partition, service, region, account, resource }
}

/** Writes it down again. */
export const formatArn = (arn: Arn): string =>
  ['arn', arn.partition, arn.service, arn.region, arn.account, arn.resource].join(':')

/** Reads the ARN of an EKS cluster. */
export const parseEksClusterArn = (text: string): EksCluster => {
  const { partition, service, region, account, resource } = parseArn(text)
  // EKS: up to 100 letters, digits, - and _, beginning with a letter or a digit.
  const name = /^cluster\/([a-zA-Z0-9][a-zA-Z0-9_-]{0,99})$/.exec(resource)?.[1]
  const wrong = (what: string): AwsInputError =>
    new AwsInputError(
      `${text} is not the ARN of an EKS cluster: ${what}`,
      'write arn:aws:eks:<region>:<account>:cluster/<name>',
    )
  if (service !== 'eks') throw wrong(`its service is ${service}`)
  if (!region) throw wrong('it has no region')
  if (!account) throw wrong('it has no account')
  if (!name) throw wrong(`${quoted(resource)} does not name a cluster`)
  return { partition, region, account, name }
}

/** The ARN of an EKS cluster. */
export const eksClusterArn = ({ partition, region, account, name }: EksCluster): string =>
  formatArn({ partition, service: 'eks', region, account, resource: `cluster/${name}` })

/** What an ARN says about an IAM role. */
export interface IamRole {
  partition: string
  account: string
  /** `/` or `/teams/a/`. */
  path: string
  name: string
}

/** Reads the ARN of an IAM role. */
export const parseRoleArn = (text: string): IamRole => {
  const { partition, service, region, account, resource } = parseArn(text)
  const match = /^role(\/(?:[\x21-\x7e]+\/)?)([\w+=,.@-]{1,64})$/.exec(resource)
  const wrong = (what: string): AwsInputError =>
    new AwsInputError(`${text} is not the ARN of a role: ${what}`, 'write arn:aws:iam::<account>:role/<name>')
  if (service !== 'iam') throw wrong(`its service is ${service}`)
  if (region) throw wrong('roles have no region')
  if (!account) throw wrong('it has no account')
  if (!match) throw wrong(`${quoted(resource)} does not name a role`)
  return { partition, account, path: match[1]!, name: match[2]! }
}

const quoted = (text: string): string => JSON.stringify(text.slice(0, 100))
