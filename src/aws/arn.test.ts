import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { eksClusterArn, formatArn, parseArn, parseEksClusterArn, parseRoleArn, partitionOf } from './arn.ts'
import { AwsInputError } from './errors.ts'

const clusters = [
  'arn:aws:eks:us-west-2:123456789012:cluster/hub-cluster1',
  'arn:aws-cn:eks:cn-northwest-1:123456789012:cluster/hub_1',
  'arn:aws-us-gov:eks:us-gov-east-1:123456789012:cluster/H',
  'arn:aws-eusc:eks:eusc-de-east-1:123456789012:cluster/h',
]

test('R1.19 the ARNs of EKS clusters are read in every partition, and written as they were', () => {
  for (const arn of clusters) assert.equal(eksClusterArn(parseEksClusterArn(arn)), arn)
  assert.deepEqual(parseEksClusterArn(clusters[1]!), {
    partition: 'aws-cn',
    region: 'cn-northwest-1',
    account: '123456789012',
    name: 'hub_1',
  })
})

const wrong: [arn: string, part: RegExp][] = [
  ['', /does not begin with "arn:"/],
  ['arn:aws:eks', /fewer than six parts/],
  ['arn:aws:eks:us-west-2:123456789012', /fewer than six parts/],
  ['arn:amazon:eks:us-west-2:123456789012:cluster/a', /no partition "amazon"/],
  ['arn:aws:eks:us-west:123456789012:cluster/a', /the region "us-west"/],
  ['arn:aws:eks:evil.example.com/us-west-2:123456789012:cluster/a', /the region/],
  ['arn:aws:eks:cn-north-1:123456789012:cluster/a', /cn-north-1 is in partition aws-cn, not in aws/],
  ['arn:aws:eks:us-west-2:12345678901:cluster/a', /the account "12345678901" is not twelve digits/],
  ['arn:aws:eks:us-west-2:123456789012:', /the resource is missing/],
  ['arn:aws:eks:us-west-2:123456789012:cluster/a b', /characters that no resource has/],
  ['arn:aws:iam::123456789012:role/a', /its service is iam/],
  ['arn:aws:eks::123456789012:cluster/a', /it has no region/],
  ['arn:aws:eks:us-west-2::cluster/a', /it has no account/],
  ['arn:aws:eks:us-west-2:123456789012:cluster/-a', /does not name a cluster/],
  ['arn:aws:eks:us-west-2:123456789012:cluster/a/b', /does not name a cluster/],
  ['arn:aws:eks:us-west-2:123456789012:nodegroup/a', /does not name a cluster/],
  [`arn:aws:eks:us-west-2:123456789012:cluster/${'a'.repeat(101)}`, /does not name a cluster/],
]

test('R1.13 an ARN that is malformed is refused with the part that is wrong', () => {
  for (const [arn, part] of wrong)
    assert.throws(
      () => parseEksClusterArn(arn),
      (error) => error instanceof AwsInputError && part.test(error.message),
      arn,
    )
})

test('no text makes the reader of ARNs do anything but answer or say what is wrong', () => {
  const pieces = fc.array(
    fc.oneof(fc.constantFrom('arn', 'aws', 'eks', ':', '/', 'cluster', '123456789012'), fc.string()),
  )
  fc.assert(
    fc.property(pieces, (parts) => {
      const text = parts.join('')
      try {
        assert.equal(formatArn(parseArn(text)), text)
      } catch (error) {
        assert.ok(error instanceof AwsInputError, String(error))
      }
    }),
  )
})

test('roles are read with their paths, and nothing else passes for one', () => {
  assert.deepEqual(parseRoleArn('arn:aws:iam::123456789012:role/teams/a/Admin'), {
    partition: 'aws',
    account: '123456789012',
    path: '/teams/a/',
    name: 'Admin',
  })
  for (const arn of [
    'arn:aws:iam::123456789012:user/a',
    'arn:aws:iam::123456789012:role/',
    'arn:aws:sts::123456789012:role/a',
  ])
    assert.throws(() => parseRoleArn(arn), AwsInputError)
})

test('each region is in its partition', () => {
  const expected = {
    'eu-west-1': 'aws',
    'cn-north-1': 'aws-cn',
    'us-gov-west-1': 'aws-us-gov',
    'us-isob-east-1': 'aws-iso-b',
  }
  for (const [region, partition] of Object.entries(expected)) assert.equal(partitionOf(region), partition)
})
