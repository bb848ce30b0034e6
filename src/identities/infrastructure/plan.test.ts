import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { manualClock } from '../../../testkit/index.ts'
import type { AWSCluster } from '../../api/index.ts'
import type { Permission } from '../../aws/index.ts'
import { canonicalIpv6, formatBlock, parseBlock, split } from './cidr.ts'
import { fixedFields } from './fixed-fields.ts'
import { Memory } from './memory.ts'
import { groupName, loadBalancerName, ownTagCount, tagsFor, targetGroupName } from './names.ts'
import { natPlan, plannedSubnets } from './plan.ts'
import { infrastructureActions } from './policy.ts'
import { ruleDifference, wantedRules } from './rules.ts'
import { notYet } from './standing.ts'
import { idleFields, unsupportedFields } from './subset.ts'

const cluster = (key: string, spec: AWSCluster['spec'] = {}, metadata = {}): AWSCluster => {
  const [namespace, name] = key.split('/') as [string, string]
  return { metadata: { namespace, name, uid: key, ...metadata }, spec }
}

test('R3.66 blocks of addresses: read, cut into equal parts that lie side by side, and written', () => {
  for (const text of ['10.0.0.0/16', '0.0.0.0/0', '192.168.1.128/25', '255.255.255.255/32'])
    assert.equal(formatBlock(parseBlock(text)!), text)
  for (const text of ['10.0.0.1/16', '10.0.0.0/33', '10.0.0/16', '256.0.0.0/8', '10.0.0.0', '::/0'])
    assert.equal(parseBlock(text), undefined, text)
  assert.deepEqual(split(parseBlock('10.0.0.0/16')!, 3).map(formatBlock), [
    '10.0.0.0/18',
    '10.0.64.0/18',
    '10.0.128.0/18',
    '10.0.192.0/18',
  ])
  assert.equal(canonicalIpv6('2001:DB8:0:0:0:0:0:0/32'), '2001:db8::/32')
  assert.equal(canonicalIpv6('10.0.0.0/8'), undefined)
  assert.equal(canonicalIpv6('::/129'), undefined)
})

test('R3.66 subnets over zones: a public and a private one in each, large ones where they are preferred, NAT where there is one', () => {
  const blocks = (schema?: 'PreferPublic') =>
    plannedSubnets('c', ['a', 'b'], { cidrBlock: '10.0.0.0/16', ...(schema ? { subnetSchema: schema } : {}) }).map(
      ({ id, cidrBlock, isPublic }) => [id, cidrBlock, isPublic],
    )
  assert.deepEqual(blocks(), [
    ['c-subnet-public-a', '10.0.0.0/19', true],
    ['c-subnet-private-a', '10.0.64.0/18', false],
    ['c-subnet-public-b', '10.0.32.0/19', true],
    ['c-subnet-private-b', '10.0.128.0/18', false],
  ])
  assert.deepEqual(
    blocks('PreferPublic').map(([id]) => id),
    ['c-subnet-private-a', 'c-subnet-public-a', 'c-subnet-private-b', 'c-subnet-public-b'],
  )
  assert.throws(() => plannedSubnets('c', ['a', 'b', 'c'], { cidrBlock: '10.0.0.0/26' }), /too small .* \/30/)
  const at = (availabilityZone: string, isPublic: boolean) => ({
    id: `${availabilityZone}-${isPublic}`,
    availabilityZone,
    isPublic,
  })
  const plan = natPlan([at('a', true), at('a', false), at('b', false), at('c', true)])
  assert.deepEqual(
    [...plan].map(([zone, { id }]) => [zone, id]),
    [
      ['a', 'a-true'],
      ['b', 'a-true'],
    ],
  )
  assert.throws(() => natPlan([at('a', false)]), /no public subnet for a NAT gateway; add a subnet with isPublic/)
})

test('R3.1 R3.54 names and tags differ for namespaces and names that join to the same text', () => {
  const [one, two] = [cluster('a-b/c'), cluster('a/b-c')]
  assert.notEqual(loadBalancerName(one), loadBalancerName(two))
  assert.match(loadBalancerName(cluster(`n/${'x.y'.repeat(20)}`)), /^[a-z0-9][-a-z0-9]{0,30}[a-z0-9]$/)
  // AWS refuses load balancers whose name begins so; target groups may.
  assert.match(loadBalancerName(cluster(`n/internal-${'x'.repeat(50)}`)), /^k8s-internal-x{8}-[a-z0-9]{10}$/)
  assert.match(loadBalancerName(cluster('n/internal')), /^k8s-internal-[a-z0-9]{10}$/)
  assert.match(targetGroupName(cluster('n/internal')), /^internal-[a-z0-9]{10}$/)
  assert.equal(groupName(cluster('sg-team/c'), 'node'), '@sg-team/c-node')
  const tags = tagsFor(
    cluster('a/b', { additionalTags: { 'lanyard.io/aws-cluster': 'x/y', Name: 'mine' } }),
    'vpc',
    'common',
  )
  assert.equal(tags['lanyard.io/aws-cluster'], 'a/b')
  assert.equal(tags['Name'], 'mine')
  const most = tagsFor(cluster('a/b'), 'subnet-x', 'public', {
    'kubernetes.io/role/elb': '1',
    'kubernetes.io/cluster/b': 'owned',
  })
  assert.ok(Object.keys(most).length <= ownTagCount)
})

test('R3.66 rules of security groups: only what is missing is let in, only what is surplus is shut out, however AWS says it', () => {
  const groups = { 'apiserver-lb': 'sg-api', lb: 'sg-lb', controlplane: 'sg-cp', node: 'sg-n' }
  const surroundings = { groups, natAddresses: ['1.2.3.4'], apiPort: 443 }
  const network = {
    additionalNodeIngressRules: [
      { description: 'x', protocol: '58' as const, fromPort: -1, toPort: -1, ipv6CidrBlocks: ['2001:DB8::/32'] },
      { description: 'y', protocol: '-1' as const, fromPort: 0, toPort: 0, natGatewaysIPsSource: true },
    ],
  }
  const rules = wantedRules({}, network, surroundings)
  assert.deepEqual(
    rules['apiserver-lb'].map(({ fromPort, cidrBlocks }) => [fromPort, cidrBlocks]),
    [[443, ['0.0.0.0/0']]],
  )
  const { missing, surplus } = ruleDifference([], rules.node, surroundings)
  assert.equal(surplus.length, 0)
  const told = missing.map(({ protocol, fromPort, cidrs, ipv6Cidrs, groupIds }) =>
    [protocol, fromPort, ...cidrs, ...ipv6Cidrs, ...groupIds].join(' '),
  )
  assert.deepEqual(told.toSorted(), [
    '-1  1.2.3.4/32',
    '4  sg-cp',
    '4  sg-n',
    'icmpv6 -1 2001:db8::/32',
    'tcp 10250 sg-cp',
    'tcp 10250 sg-n',
    'tcp 179 sg-cp',
    'tcp 179 sg-n',
    'tcp 30000 0.0.0.0/0',
  ])
  // AWS joins what has the same ports into one permission.
  const joined: Permission[] = [
    ...Map.groupBy(missing, ({ protocol, fromPort }) => `${protocol} ${fromPort}`).values(),
  ].map((same) => ({ ...same[0]!, groupIds: same.flatMap(({ groupIds }) => groupIds) }))
  assert.deepEqual(ruleDifference(joined, rules.node, surroundings), { missing: [], surplus: [] })
  const open = { ...joined[0]!, protocol: 'tcp', fromPort: 22, toPort: 22, cidrs: ['0.0.0.0/0'], groupIds: [] }
  assert.deepEqual(ruleDifference([...joined, open], rules.node, surroundings), { missing: [], surplus: [open] })
})

test('R3.66 the page of AWSCluster names every right that an identity needs', () => {
  const page = readFileSync(new URL('../../../docs/spec/awscluster.md', import.meta.url), 'utf8')
  const missing = infrastructureActions.filter((action) => !new RegExp(`\\b${action.split(':')[1]}\\b`).test(page))
  assert.deepEqual(missing, [])
})

const refused: [spec: NonNullable<AWSCluster['spec']>, message: RegExp][] = [
  [{ bastion: { enabled: true } }, /^spec\.bastion\.enabled: is not supported/],
  [{ s3Bucket: { name: 'abc' } }, /^spec\.s3Bucket: /],
  [{ secondaryControlPlaneLoadBalancer: {} }, /^spec\.secondaryControlPlaneLoadBalancer: /],
  [{ network: { vpc: { ipv6: {} } } }, /^spec\.network\.vpc\.ipv6: is not supported: clusters are IPv4/],
  [{ networkSpec: { vpc: { ipv6: {} } } }, /^spec\.network\.vpc\.ipv6: /],
  [{ network: { vpc: { ipamPool: { id: 'x' } } } }, /ipamPool: .*write the block into cidrBlock/],
  [{ network: { vpc: { secondaryCidrBlocks: [{ ipv4CidrBlock: '10.1.0.0/16' }] } } }, /secondaryCidrBlocks/],
  [{ network: { vpc: { availabilityZoneSelection: 'Random' } } }, /availabilityZoneSelection: .*use Ordered/],
  [{ network: { vpc: { cidrBlock: '10.0.0.0/8' } } }, /cidrBlock: "10\.0\.0\.0\/8" is no block of a VPC/],
  [{ network: { vpc: { internetGatewayId: 'igw-1' } } }, /internetGatewayId/],
  [{ network: { subnets: [{ id: 'subnet-1' }] } }, /subnets\[0\]\.id: subnet-1 is an existing subnet/],
  [{ network: { subnets: [{ id: 'a', cidrBlock: '10.0.0.0/24' }] } }, /subnets\[0\]\.availabilityZone/],
  [{ network: { subnets: [{ id: 'a', cidrBlock: '10.1.0.0/24', availabilityZone: 'z' }] } }, /not inside the block/],
  [
    {
      network: {
        subnets: [
          { id: 'a', cidrBlock: '10.0.0.0/23', availabilityZone: 'z' },
          { id: 'b', cidrBlock: '10.0.1.0/24', availabilityZone: 'z' },
        ],
      },
    },
    /^spec\.network\.subnets\[1\]\.cidrBlock: overlaps/,
  ],
  [{ network: { vpc: { id: 'vpc-1' }, subnets: [{ id: 'subnet-1', isIpv6: true }] } }, /isIpv6/],
  [{ network: { securityGroupOverrides: { bastion: 'sg-1' } } }, /securityGroupOverrides\[bastion\]: .*the roles are/],
  [
    { network: { nodePortIngressRuleCidrBlocks: ['10.0.0.1/8'] } },
    /nodePortIngressRuleCidrBlocks\[0\]: .*no IPv4 block/,
  ],
  [
    { network: { additionalNodeIngressRules: [{ description: '', protocol: 'tcp', fromPort: 1, toPort: 1 }] } },
    /additionalNodeIngressRules\[0\]: lets nobody in/,
  ],
  [{ controlPlaneLoadBalancer: { loadBalancerType: 'classic' } }, /loadBalancerType: .*write nlb/],
  [{ controlPlaneLoadBalancer: { loadBalancerType: 'disabled', name: 'x' } }, /name: .*leave it out/],
  [{ controlPlaneLoadBalancer: { healthCheckProtocol: 'UDP' } }, /healthCheckProtocol: .*use TCP, HTTP, HTTPS/],
  [{ controlPlaneLoadBalancer: { healthCheck: { intervalSeconds: 1 } } }, /intervalSeconds: is between 5 and 300/],
  [{ controlPlaneLoadBalancer: { healthCheck: { timeoutSeconds: 11 } } }, /timeoutSeconds: is 11, .*which is 10/],
  [{ controlPlaneLoadBalancer: { name: 'internal-api' } }, /name: begins with internal-, .*choose another/],
  [{ controlPlaneLoadBalancer: { additionalListeners: [{ port: 22 }] } }, /additionalListeners/],
  [{ controlPlaneLoadBalancer: { dnsResolutionCheck: 'Enabled' } }, /dnsResolutionCheck/],
  [{ controlPlaneLoadBalancer: { targetGroupIPType: 'ipv6' } }, /targetGroupIPType/],
  [
    { additionalTags: Object.fromEntries(Array.from({ length: 44 }, (_, i) => [`t${i}`, ''])) },
    /additionalTags: has more/,
  ],
  [
    { additionalTags: { 'cost centre': 'a', 'on-call': '#ops' } },
    /additionalTags\[on-call\]: load balancers take letters/,
  ],
]

test(`R3.69 ${refused.length} things that are not built here are refused by their field, and what is built is not`, () => {
  for (const [spec, message] of refused) {
    const faults = unsupportedFields(cluster('a/b', spec)).map((fault) => `${fault.field}: ${fault.message}`)
    assert.equal(faults.length, 1, `${JSON.stringify(spec)}: ${faults.join('; ')}`)
    assert.match(faults[0]!, message)
  }
  assert.equal(unsupportedFields(cluster(`a/${'b'.repeat(64)}`)).length, 1)
  const good: AWSCluster['spec'] = {
    network: {
      vpc: { cidrBlock: '10.8.0.0/16', availabilityZoneSelection: 'Ordered', tags: { a: 'b' } },
      subnets: [{ id: 'a', cidrBlock: '10.8.0.0/24', availabilityZone: 'z', isPublic: true }],
      securityGroupOverrides: { node: 'sg-1' },
      cni: { cniIngressRules: [] },
    },
    controlPlaneLoadBalancer: {
      loadBalancerType: 'nlb',
      scheme: 'internal',
      name: 'internal',
      healthCheck: { protocol: 'HTTPS', intervalSeconds: 10, timeoutSeconds: 10 },
    },
    additionalTags: { 'Kosten/Stelle': 'Größe: a+b=c @x_1.2-3' },
    sshKeyName: 'default',
  }
  assert.deepEqual(unsupportedFields(cluster('a/b', good)), [])
  assert.deepEqual(
    unsupportedFields(
      cluster('a/b', {
        controlPlaneLoadBalancer: { loadBalancerType: 'disabled', scheme: 'internal' },
        additionalTags: { 'on-call': '#ops' },
      }),
    ),
    [],
  )
  assert.match(idleFields(cluster('a/b', good)).join(), /^spec\.sshKeyName: is for whoever makes machines/)
})

test('R3.17 R3.53 nothing is done without an owner, with a field that is not built, or while one condition of the identity is not True', () => {
  const chain = { links: [], path: '', recipe: { kind: 'controller' as const } }
  const ownerReferences = [{ apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', name: 'b', uid: 'u' }]
  const condition = (type: string, status: 'True' | 'False' | 'Unknown' = 'True') => ({
    type,
    status,
    reason: 'x',
    message: '',
    lastTransitionTime: '',
  })
  const good = ['PrincipalUsageAllowed', 'PrincipalCredentialRetrieved', 'AccountRecorded']
  const standing = (conditions: ReturnType<typeof condition>[], metadata = {}, spec: AWSCluster['spec'] = {}) =>
    notYet(
      {
        ...cluster('a/b', { accountID: '1'.repeat(12), ...spec }, { ownerReferences, ...metadata }),
        status: { conditions },
      },
      chain,
    )?.reason
  const all = good.map((type) => condition(type))
  assert.equal(standing(all), undefined)
  assert.equal(standing(all, { ownerReferences: [] }), 'WaitingForCluster')
  assert.equal(standing(all, {}, { bastion: { enabled: true } }), 'UnsupportedField')
  for (const type of good)
    for (const status of ['False', 'Unknown'] as const)
      assert.equal(standing([...all.filter((one) => one.type !== type), condition(type, status)]), 'WaitingForIdentity')
  // Whoever goes needs neither an owner nor supported fields.
  const leaving = { ownerReferences: [], deletionTimestamp: '2026-01-01T00:00:00Z' }
  assert.equal(standing(all, leaving, { bastion: { enabled: true } }), undefined)
  assert.equal(
    notYet({ ...cluster('a/b', {}, { ownerReferences }), status: { conditions: all } }, chain)?.reason,
    'WaitingForIdentity',
  )
})

test('R3.69 what was begun cannot be changed, and what was left open can be filled in', () => {
  const finalizers = ['awscluster.infrastructure.cluster.x-k8s.io']
  const begun = (spec: AWSCluster['spec']) => cluster('a/b', spec, { finalizers })
  const fields = (now: AWSCluster['spec'], old: AWSCluster['spec']) =>
    fixedFields(begun(now), begun(old)).map(({ field }) => field)
  assert.deepEqual(fields({ network: { vpc: { id: 'vpc-1', cidrBlock: '10.0.0.0/16' } } }, {}), [])
  assert.deepEqual(fields({ controlPlaneLoadBalancer: { scheme: 'internal' } }, {}), [
    'spec.controlPlaneLoadBalancer.scheme',
  ])
  assert.deepEqual(fields({ controlPlaneLoadBalancer: { loadBalancerType: 'nlb' } }, {}), [])
  const old = { network: { subnets: [{ id: 'x', cidrBlock: '10.0.0.0/24' }] } }
  const filled = { id: 'x', cidrBlock: '10.0.0.0/24', isPublic: true, resourceID: 'subnet-1' }
  assert.deepEqual(fields({ network: { subnets: [filled, { id: 'y' }] } }, old), [])
  assert.deepEqual(fields({ network: { subnets: [{ id: 'x', cidrBlock: '10.0.1.0/24' }] } }, old), [
    'spec.network.subnets[x].cidrBlock',
  ])
  assert.deepEqual(fixedFields(cluster('a/b', {}), cluster('a/b', old)), [])
})

test('R3.67 a process that has just started waits before it makes what may be there; what it made counts until lists show it', () => {
  const clock = manualClock()
  const memory = new Memory({ clock, settleMs: 15_000 })
  memory.look(cluster('new/one'))
  assert.equal(memory.unsettledMs('new/one'), 0) // nobody has ever acted for it
  memory.look(cluster('old/one', {}, { finalizers: ['awscluster.infrastructure.cluster.x-k8s.io'] }))
  assert.equal(memory.unsettledMs('old/one'), 15_000)
  clock.advance(15_000)
  assert.equal(memory.unsettledMs('old/one'), 0)
  // What counts is when the list was asked for, not when something is made of it.
  assert.deepEqual(
    [0, 14_999, 15_000].map((at) => memory.isSettled('old/one', at)),
    [false, false, true],
  )
  assert.equal(memory.isSettled('new/one', 0), true)

  memory.made('old/one', 'vpcs', { id: 'vpc-1' })
  assert.deepEqual(memory.with('old/one', 'vpcs', [{ id: 'vpc-2' }]), [{ id: 'vpc-2' }, { id: 'vpc-1' }])
  assert.deepEqual(memory.with('old/one', 'vpcs', [{ id: 'vpc-1' }]), [{ id: 'vpc-1' }])
  assert.deepEqual(memory.with('old/one', 'subnets', []), [])
  assert.deepEqual(memory.with('new/one', 'vpcs', []), [])
  memory.unmade('old/one', 'vpc-1')
  assert.equal(memory.madeSomething('old/one'), false)
  memory.made('old/one', 'vpcs', { id: 'vpc-3' })
  clock.advance(120_000)
  assert.deepEqual(memory.with('old/one', 'vpcs', []), []) // somebody has deleted it

  memory.quiet('old/one', 'print', 1000)
  assert.equal(memory.quietMs('old/one', 'print'), 1000)
  assert.equal(memory.quietMs('old/one', 'another'), 0)
  const pauses = [1, 2, 3].map(() => memory.failed('old/one', 'print', (failures) => 10 * 2 ** failures))
  assert.deepEqual(pauses, [10, 20, 40])
})
