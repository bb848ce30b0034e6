import { checkedRegion, dnsSuffixOf, iamRegionOf, partitionOf } from './arn.ts'
import { AwsInputError } from './errors.ts'

export type Service = 'sts' | 'iam' | 'eks' | 'ec2' | 'elasticloadbalancing'

/** Instead of AWS's own endpoints: for one service (`AWS_ENDPOINT_URL_STS`), or for all that have none (`AWS_ENDPOINT_URL`). */
export type EndpointOverrides = Partial<Record<Service | 'all', string | undefined>>

/** Where a service is called, and the region that calls are signed for. */
export interface Endpoint {
  url: URL
  region: string
}

/** Always the region's own endpoint: STS's global one is another partition's for some, and far away for most. */
export const endpointOf = (service: Service, region: string, overrides: EndpointOverrides = {}): Endpoint => {
  checkedRegion(region)
  const override = overrides[service] ?? overrides.all
  const signedFor = service === 'iam' ? iamRegionOf(region) : region
  return { url: override ? parsed(override) : new URL(`https://${hostOf(service, region)}`), region: signedFor }
}

/** The overrides that the AWS SDKs know by their environment variables. */
export const endpointsFrom = (env: Record<string, string | undefined>): EndpointOverrides => {
  if (env['AWS_IGNORE_CONFIGURED_ENDPOINT_URLS'] === 'true') return {}
  return {
    all: env['AWS_ENDPOINT_URL'] || undefined,
    sts: env['AWS_ENDPOINT_URL_STS'] || undefined,
    iam: env['AWS_ENDPOINT_URL_IAM'] || undefined,
    eks: env['AWS_ENDPOINT_URL_EKS'] || undefined,
    ec2: env['AWS_ENDPOINT_URL_EC2'] || undefined,
    elasticloadbalancing: env['AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2'] || undefined,
  }
}

const hostOf = (service: Service, region: string): string => {
  const suffix = dnsSuffixOf(region)
  if (service !== 'iam') return `${service}.${region}.${suffix}`
  // IAM has one endpoint in each partition, named in three ways.
  const partition = partitionOf(region)
  if (partition === 'aws') return `iam.${suffix}`
  return partition === 'aws-us-gov' ? `iam.us-gov.${suffix}` : `iam.${iamRegionOf(region)}.${suffix}`
}

const parsed = (text: string): URL => {
  const url = URL.parse(text)
  const plain = url && url.pathname === '/' && !url.search && !url.hash && !url.username && !url.password
  if (plain && (url.protocol === 'https:' || url.protocol === 'http:')) return url
  throw new AwsInputError(
    `the endpoint ${JSON.stringify(url ? url.origin : text.slice(0, 100))} is not a URL of scheme, host and port alone`,
    'write one such as http://127.0.0.1:4566',
  )
}
