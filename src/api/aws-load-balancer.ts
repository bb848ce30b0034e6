import { ingressRule } from './aws-network.ts'
import { array, boolean, integer, object, string } from './schema.ts'

const healthCheckProtocol = ['TCP', 'SSL', 'HTTP', 'HTTPS', 'TLS', 'UDP'] as const

const seconds = (description: string) => integer(description, { format: 'int64', minimum: 0 })

/** The load balancer in front of the API server. */
export const loadBalancer = (description: string) =>
  object(description, {
    'name?': string('Its name; made from that of the cluster if absent.', {
      maxLength: 32,
      pattern: '^[A-Za-z0-9]([A-Za-z0-9]{0,31}|[-A-Za-z0-9]{0,30}[A-Za-z0-9])$',
    }),
    'scheme?': string('Who reaches it.', { enum: ['internet-facing', 'internal'], default: 'internet-facing' }),
    'crossZoneLoadBalancing?': boolean('Spread over all zones.'),
    'subnets?': array('Where it stands.', string(undefined, { maxLength: 128 })),
    'healthCheckProtocol?': string('How targets are checked.', { enum: healthCheckProtocol }),
    'healthCheck?': object('How often targets are checked.', {
      'protocol?': string('How.', { maxLength: 16 }),
      'port?': string('Which port.', { maxLength: 16 }),
      'path?': string('Which path.', { maxLength: 1024 }),
      'intervalSeconds?': seconds('Between two checks.'),
      'timeoutSeconds?': seconds('Until a check has failed.'),
      'thresholdCount?': seconds('Good checks until a target is healthy.'),
      'unhealthyThresholdCount?': seconds('Bad checks until it is not.'),
    }),
    'additionalSecurityGroups?': array('More security groups.', string(undefined, { maxLength: 128 })),
    'additionalListeners?': array(
      'More ports.',
      object('One port.', {
        port: integer('The port.', { format: 'int64', minimum: 1, maximum: 65535 }),
        'protocol?': string('What it speaks.', { enum: ['TCP'], default: 'TCP' }),
      }),
      { keys: ['port'], maxItems: 16 },
    ),
    'ingressRules?': array('Who reaches it; everyone if absent.', ingressRule),
    'loadBalancerType?': string('What is made; nothing with disabled.', {
      enum: ['classic', 'elb', 'alb', 'nlb', 'disabled'],
    }),
    'disableHostsRewrite?': boolean('Leave the hosts file of control plane machines alone.'),
    'preserveClientIP?': boolean('Show targets the address of the client.'),
    'targetGroupIPType?': string('Addresses of targets.', { enum: ['ipv4', 'ipv6'] }),
    'dnsResolutionCheck?': string('Whether its name must resolve before it counts as ready.', {
      enum: ['None', 'Enabled'],
    }),
  })

/** A load balancer as it was made. */
export const loadBalancerStatus = (description: string) =>
  object(description, {
    'name?': string('Its name.'),
    'arn?': string('Its ARN.'),
    'dnsName?': string('Name that it is reached by.'),
    'scheme?': string('Who reaches it.'),
    'loadBalancerType?': string('What it is.'),
    'subnetIds?': array('Where it stands.', string()),
    'securityGroupIds?': array('Its security groups.', string()),
  })
