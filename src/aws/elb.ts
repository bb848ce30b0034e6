import type { QueryValue } from './client.ts'
import type { AwsTags, QuerySender } from './ec2.ts'
import { failedFor } from './errors.ts'
import { listAt, textAt, type XmlElement } from './xml.ts'

export const elbVersion = '2015-12-01'

export interface LoadBalancer {
  arn: string
  name: string
  dnsName: string
  scheme: string
  /** provisioning, active, active_impaired or failed. */
  state: string
  /** Why it is not active. */
  failure: string | undefined
  type: string
  subnetIds: string[]
  securityGroupIds: string[]
}

/** How targets are asked whether they live. */
export interface HealthCheck {
  protocol: string
  port: string
  /** For HTTP and HTTPS. */
  path?: string | undefined
  intervalSeconds: number
  timeoutSeconds: number
  healthyCount: number
  unhealthyCount: number
}

export interface TargetGroup {
  arn: string
  name: string
  vpcId: string
  port: number
  health: HealthCheck
}

export interface Listener {
  arn: string
  port: number
  protocol: string
  targetGroupArn: string | undefined
}

const text = (element: XmlElement, ...path: string[]): string => textAt(element, ...path) ?? ''

const loadBalancer = (one: XmlElement): LoadBalancer => ({
  arn: text(one, 'LoadBalancerArn'),
  name: text(one, 'LoadBalancerName'),
  dnsName: text(one, 'DNSName'),
  scheme: text(one, 'Scheme'),
  state: text(one, 'State', 'Code'),
  failure: textAt(one, 'State', 'Reason') || undefined,
  type: text(one, 'Type'),
  subnetIds: listAt(one, 'AvailabilityZones').map((zone) => text(zone, 'SubnetId')),
  securityGroupIds: listAt(one, 'SecurityGroups').map((group) => group.text),
})

const targetGroup = (one: XmlElement): TargetGroup => {
  const protocol = text(one, 'HealthCheckProtocol')
  return {
    arn: text(one, 'TargetGroupArn'),
    name: text(one, 'TargetGroupName'),
    vpcId: text(one, 'VpcId'),
    port: Number(text(one, 'Port')),
    health: {
      protocol,
      port: text(one, 'HealthCheckPort'),
      path: protocol === 'TCP' ? undefined : text(one, 'HealthCheckPath'),
      intervalSeconds: Number(text(one, 'HealthCheckIntervalSeconds')),
      timeoutSeconds: Number(text(one, 'HealthCheckTimeoutSeconds')),
      healthyCount: Number(text(one, 'HealthyThresholdCount')),
      unhealthyCount: Number(text(one, 'UnhealthyThresholdCount')),
    },
  }
}

const listener = (one: XmlElement): Listener => ({
  arn: text(one, 'ListenerArn'),
  port: Number(text(one, 'Port')),
  protocol: text(one, 'Protocol'),
  targetGroupArn: listAt(one, 'DefaultActions')
    .map((action) => textAt(action, 'TargetGroupArn'))
    .find(Boolean),
})

const tagList = (tags: AwsTags): QueryValue[] => Object.entries(tags).map(([Key, Value]) => ({ Key, Value }))

const healthParameters = ({ protocol, port, path, ...health }: HealthCheck): Record<string, QueryValue> => ({
  HealthCheckProtocol: protocol,
  HealthCheckPort: port,
  HealthCheckPath: path,
  HealthCheckIntervalSeconds: health.intervalSeconds,
  HealthCheckTimeoutSeconds: health.timeoutSeconds,
  HealthyThresholdCount: health.healthyCount,
  UnhealthyThresholdCount: health.unhealthyCount,
})

const attributeList = (attributes: AwsTags): QueryValue => tagList(attributes)
const attributesIn = (answer: XmlElement, action: string): AwsTags =>
  Object.fromEntries(
    listAt(answer, `${action}Result`, 'Attributes').map((one) => [text(one, 'Key'), text(one, 'Value')]),
  )

/** A name that nobody has is an error of AWS; here it is no answer. */
const found = async <T>(asked: Promise<T>): Promise<T | undefined> => {
  try {
    return await asked
  } catch (error) {
    if (failedFor(error, 'NotFound')) return undefined
    throw error
  }
}

/** Network load balancers, for one caller in one region. Their names are unique there, so making one twice makes one. */
export const elb = (send: QuerySender) => {
  const first = (answer: XmlElement, action: string, list: string): XmlElement | undefined =>
    listAt(answer, `${action}Result`, list)[0]
  const only = async (action: string, parameters: Record<string, QueryValue>): Promise<void> => {
    await send(action, parameters)
  }
  const attributes = async (action: string, parameters: Record<string, QueryValue>): Promise<AwsTags> =>
    attributesIn(await send(action, parameters), action)
  return {
    loadBalancer: async (name: string): Promise<LoadBalancer | undefined> => {
      const answer = await found(send('DescribeLoadBalancers', { Names: [name] }))
      const one = answer && first(answer, 'DescribeLoadBalancers', 'LoadBalancers')
      return one && loadBalancer(one)
    },
    createLoadBalancer: async (
      wanted: { name: string; scheme: string; subnetIds: string[]; securityGroupIds: string[] },
      tags: AwsTags,
    ): Promise<LoadBalancer> => {
      const answer = await send('CreateLoadBalancer', {
        Name: wanted.name,
        Type: 'network',
        Scheme: wanted.scheme,
        IpAddressType: 'ipv4',
        Subnets: wanted.subnetIds,
        SecurityGroups: wanted.securityGroupIds,
        Tags: tagList(tags),
      })
      return loadBalancer(first(answer, 'CreateLoadBalancer', 'LoadBalancers')!)
    },
    setSubnets: (arn: string, subnetIds: string[]) => only('SetSubnets', { LoadBalancerArn: arn, Subnets: subnetIds }),
    setSecurityGroups: (arn: string, ids: string[]) =>
      only('SetSecurityGroups', { LoadBalancerArn: arn, SecurityGroups: ids }),
    loadBalancerAttributes: (arn: string) => attributes('DescribeLoadBalancerAttributes', { LoadBalancerArn: arn }),
    setLoadBalancerAttributes: (arn: string, wanted: AwsTags) =>
      only('ModifyLoadBalancerAttributes', { LoadBalancerArn: arn, Attributes: attributeList(wanted) }),
    deleteLoadBalancer: (arn: string) => only('DeleteLoadBalancer', { LoadBalancerArn: arn }),

    targetGroup: async (name: string): Promise<TargetGroup | undefined> => {
      const answer = await found(send('DescribeTargetGroups', { Names: [name] }))
      const one = answer && first(answer, 'DescribeTargetGroups', 'TargetGroups')
      return one && targetGroup(one)
    },
    createTargetGroup: async (
      wanted: { name: string; vpcId: string; port: number; health: HealthCheck },
      tags: AwsTags,
    ): Promise<TargetGroup> => {
      const answer = await send('CreateTargetGroup', {
        Name: wanted.name,
        VpcId: wanted.vpcId,
        Protocol: 'TCP',
        Port: wanted.port,
        TargetType: 'instance',
        ...healthParameters(wanted.health),
        Tags: tagList(tags),
      })
      return targetGroup(first(answer, 'CreateTargetGroup', 'TargetGroups')!)
    },
    setHealthCheck: (arn: string, health: HealthCheck) =>
      only('ModifyTargetGroup', { TargetGroupArn: arn, ...healthParameters(health) }),
    targetGroupAttributes: (arn: string) => attributes('DescribeTargetGroupAttributes', { TargetGroupArn: arn }),
    setTargetGroupAttributes: (arn: string, wanted: AwsTags) =>
      only('ModifyTargetGroupAttributes', { TargetGroupArn: arn, Attributes: attributeList(wanted) }),
    deleteTargetGroup: (arn: string) => only('DeleteTargetGroup', { TargetGroupArn: arn }),

    listeners: async (loadBalancerArn: string): Promise<Listener[]> => {
      const answer = await send('DescribeListeners', { LoadBalancerArn: loadBalancerArn })
      return listAt(answer, 'DescribeListenersResult', 'Listeners').map(listener)
    },
    createListener: (
      { loadBalancerArn, port, targetGroupArn }: { loadBalancerArn: string; port: number; targetGroupArn: string },
      tags: AwsTags,
    ) =>
      only('CreateListener', {
        LoadBalancerArn: loadBalancerArn,
        Protocol: 'TCP',
        Port: port,
        DefaultActions: [{ Type: 'forward', TargetGroupArn: targetGroupArn }],
        Tags: tagList(tags),
      }),
    deleteListener: (arn: string) => only('DeleteListener', { ListenerArn: arn }),

    tags: async (arn: string): Promise<AwsTags> => {
      const answer = await send('DescribeTags', { ResourceArns: [arn] })
      const one = first(answer, 'DescribeTags', 'TagDescriptions')
      return Object.fromEntries((one ? listAt(one, 'Tags') : []).map((tag) => [text(tag, 'Key'), text(tag, 'Value')]))
    },
    addTags: (arn: string, tags: AwsTags) => only('AddTags', { ResourceArns: [arn], Tags: tagList(tags) }),
  }
}

export type Elb = ReturnType<typeof elb>
