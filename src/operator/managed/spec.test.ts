import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agentRole, hubRole } from '../aws-roles.ts'
import { durationSeconds, isHosted, readAgentSpec, type KlusterletSpec } from './spec.ts'

const read = (spec: KlusterletSpec, drivers = ['csr', 'awsirsa']) =>
  readAgentSpec(spec, { image: 'lanyard:1', drivers })

test('R2.7 R2.10 without a choice add-ons get no flag; with one they get theirs, and a lifetime only when there is one', () => {
  const flags = (driver: object): string[] =>
    read({ registrationConfiguration: { addOnKubeClientRegistrationDriver: driver } }).flags.filter((one) =>
      /addon/.test(one),
    )
  assert.deepEqual(flags({}), [])
  assert.deepEqual(flags({ authType: 'csr' }), ['--addon-kubeclient-registration-auth=csr'])
  assert.deepEqual(flags({ authType: 'token' }), ['--addon-kubeclient-registration-auth=token'])
  assert.deepEqual(flags({ authType: 'token', token: { expirationSeconds: 0 } }), [
    '--addon-kubeclient-registration-auth=token',
  ])
  assert.deepEqual(flags({ authType: 'token', token: { expirationSeconds: 7200 } }), [
    '--addon-kubeclient-registration-auth=token',
    '--addon-token-expiration-seconds=7200',
  ])
})

test('R1.66 awsirsa becomes its flags, and is refused by a version that does not know it', () => {
  const hubClusterArn = 'arn:aws:eks:us-west-2:123456789012:cluster/hub-cluster1'
  const managedClusterArn = 'arn:aws:eks:us-west-2:123456789012:cluster/managed-cluster1'
  const spec: KlusterletSpec = {
    registrationConfiguration: {
      registrationDriver: { authType: 'awsirsa', awsIrsa: { hubClusterArn, managedClusterArn } },
    },
  }
  assert.deepEqual(read(spec).flags, [
    '--registration-auth=awsirsa',
    `--hub-cluster-arn=${hubClusterArn}`,
    `--managed-cluster-arn=${managedClusterArn}`,
  ])
  assert.match(read(spec, ['csr']).refused.join(), /authType awsirsa: this version knows csr/)
})

test('R1.30 the roles that service accounts assume are named as the other side expects them', () => {
  const hub = 'arn:aws:eks:us-west-2:123456789012:cluster/hub-cluster1'
  const managed = 'arn:aws-us-gov:eks:us-gov-west-1:123456789012:cluster/managed-cluster1'
  assert.equal(hubRole(hub), 'arn:aws:iam::123456789012:role/hub-cluster1_managed-cluster-identity-creator')
  assert.equal(
    agentRole(hub, managed),
    'arn:aws-us-gov:iam::123456789012:role/ocm-managed-cluster-7f8141296c75f2871e3d030f85c35692',
  )
})

test('R1.66 several hubs become several secrets; without names they are refused', () => {
  const hubs = (config: object) => read({ registrationConfiguration: { bootstrapKubeConfigs: config } })
  const some = { kubeConfigSecrets: [{ name: 'a' }, { name: 'b' }], hubConnectionTimeoutSeconds: 300 }
  assert.deepEqual(hubs({ type: 'LocalSecrets', localSecretsConfig: some }).flags.slice(1), [
    '--bootstrap-kubeconfig-secret=a,b',
    '--hub-connection-timeout-seconds=300',
  ])
  assert.match(hubs({ type: 'LocalSecrets' }).refused.join(), /LocalSecrets needs localSecretsConfig/)
  assert.deepEqual(hubs({ type: 'None', localSecretsConfig: some }).flags.slice(1), [])
})

test('R1.66 durations are read as Go writes them, and anything else is refused', () => {
  assert.deepEqual(['90s', '1h30m', '1.5h', '500ms'].map(durationSeconds), [90, 5400, 5400, 1])
  assert.deepEqual(['', '10', '1d', '1h 30m', '-1h'].map(durationSeconds), [
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  const { refused } = read({ workConfiguration: { appliedManifestWorkEvictionGracePeriod: '1d' } })
  assert.match(refused.join(), /EvictionGracePeriod 1d: write it as 90s, 30m or 1h30m/)
})

test('R1.66 a value that cannot be a flag is named instead of being torn apart', () => {
  const clusterAnnotations = { 'agent.open-cluster-management.io/list': 'a,b' }
  const { flags, ignored } = read({ registrationConfiguration: { clusterAnnotations } })
  assert.deepEqual(flags, ['--registration-auth=csr'])
  assert.match(ignored.join(), /list: its value has a comma/)
})

test('R1.66 Hosted and SingletonHosted are the same to us, and so are Default and Singleton: one process either way', () => {
  const hosted = (mode?: NonNullable<KlusterletSpec['deployOption']>['mode']): boolean =>
    isHosted(mode ? { deployOption: { mode } } : {})
  assert.deepEqual([hosted('Hosted'), hosted('SingletonHosted')], [true, true])
  assert.deepEqual([hosted(), hosted('Default'), hosted('Singleton')], [false, false, false])
})
