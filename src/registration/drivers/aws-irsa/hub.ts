import type { ManagedCluster } from '../../../api/index.ts'
import type { Reason } from '../../../runtime/index.ts'
import type { HubDriver } from '../driver.ts'
import { AwsAuth } from './aws-auth.ts'
import { claimOf, claimsAnArn } from './claim.ts'
import { GrantWork } from './grant-work.ts'
import { newGrants } from './grants.ts'
import { awsFrom, hubSettings, type AwsIrsaHubOptions, type HubSettings } from './hub-options.ts'

/** AWS IAM roles, for clusters on EKS. What is made in AWS is made by a controller of its own: a slow AWS holds up nobody else. */
export const awsIrsaHubDriver = (options: AwsIrsaHubOptions): HubDriver => {
  const settings = hubSettings(options)
  const { client, clock } = options
  let onCall: Parameters<typeof awsFrom>[1]['onCall'] = () => {}
  const { aws, credentials, forget } = awsFrom(options.env ?? {}, {
    region: settings.hub.region,
    onCall: (call) => onCall?.(call),
  })
  const awsAuth = new AwsAuth(client)
  const { hub, namespace, tags, access } = settings
  const grants = newGrants({
    client,
    namespace,
    hub,
    aws,
    credentials,
    tags,
    access,
    awsAuth,
    bothMappingsMs: settings.bothMappingsMs,
    clock,
    random: options.random,
  })
  let work: GrantWork | undefined
  const started = (): GrantWork => {
    if (!work) throw new Error('the driver was not started')
    return work
  }
  return {
    name: 'awsirsa',
    // One that takes its ARN away stays what it was accepted as.
    serves: (cluster) => claimsAnArn(cluster) || (work?.recordsOf(cluster.metadata.name!).length ?? 0) > 0,
    waitsForPerson: (cluster) => whyPerson(cluster, settings),
    grant: (cluster) => started().granted(cluster),
    revoke: (cluster, signal) => started().revoked(cluster, signal),
    start: (manager) => {
      const calls = manager.metrics.counter('lanyard_aws_calls_total', 'Calls to AWS')
      onCall = ({ service, operation, result }) => calls.inc({ service, operation, result })
      work = new GrantWork({ manager, grants, settings, forget, options })
    },
    wakes: (enqueue) => started().onChange(enqueue),
  }
}

const whyPerson = (cluster: ManagedCluster, { hub, patterns }: HubSettings): Reason | undefined => {
  const { claim, refusal } = claimOf(cluster, hub)
  if (refusal) return refusal
  const { name } = cluster.metadata
  const person = `a person decides: clusteradm accept --clusters ${name}`
  if (patterns.length === 0)
    return {
      reason: 'NoPattern',
      message: `this hub has no --auto-approved-arn-patterns, so that no ARN is accepted automatically; ${person}`,
    }
  if (patterns.some((pattern) => pattern.matches(claim.arn))) return undefined
  return { reason: 'ArnNotListed', message: `no pattern of this hub matches all of ${claim.arn}; ${person}` }
}
