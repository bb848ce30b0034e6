/** The commands of the first specification, as it writes them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseArguments, type Flags } from '../main/flags.ts'
import { persistentFlags } from './command.ts'
import { findCommand } from './find.ts'
import { checkHubFlags, hubArnOf, hubFlags, hubSpec, strategiesOf } from './hub-spec.ts'
import { checkJoinFlags, joinFlags, klusterletSpec, managedArnOf } from './join-flags.ts'
import { root } from './run.ts'

/** What the shell makes of a command in the specification: a prompt, lines that go on, variables that it fills in. */
const words = (text: string, variables: Record<string, string> = {}): string[] =>
  text
    .replaceAll('\\\n', ' ')
    .replace(/^\s*% clusteradm\s/, '')
    .replaceAll(/\$\{(\w+)\}/g, (_, name: string) => variables[name] ?? '')
    .trim()
    .split(/\s+/)

const parsed = async (text: string, variables?: Record<string, string>) => {
  const { branch, path, rest } = findCommand(root, words(text, variables))
  const { command } = await branch.load!()
  const flags: Flags = { ...persistentFlags, ...command.flags }
  return { path, ...parseArguments(rest, flags) }
}

test('R1.2 R1.4 story 1: a hub is initialised with aws-irsa', async () => {
  const { path, values, words } = await parsed(
    `% clusteradm init \\
     --wait \\
     --registration-auth=aws-irsa \\
     --context \${CTX_HUB_CLUSTER}`,
    { CTX_HUB_CLUSTER: 'my-hub' },
  )
  assert.deepEqual([path, words], [['init'], []])
  assert.deepEqual([values['wait'], values['registration-auth'], values['context']], [true, ['aws-irsa'], 'my-hub'])
})

test('R1.12 R1.13 story 3: a managed cluster joins with aws-irsa', async () => {
  const { path, values, words } = await parsed(`% clusteradm join \\
     --registration-auth=aws-irsa \\
     --hub-token XXX \\
     --hub-apiserver https://hub-0.k8s.example.com \\
     --eks-hub-cluster-arn arn:aws:eks:<region>:<hub-cluster-account-id>:cluster/<hub-cluster-name> \\
     --cluster-name managed-0`)
  assert.deepEqual([path, words], [['join'], []])
  assert.deepEqual(
    [values['registration-auth'], values['hub-token'], values['hub-apiserver'], values['cluster-name']],
    ['aws-irsa', 'XXX', 'https://hub-0.k8s.example.com', 'managed-0'],
  )
  assert.equal(
    values['eks-hub-cluster-arn'],
    'arn:aws:eks:<region>:<hub-cluster-account-id>:cluster/<hub-cluster-name>',
  )
})

test('R1.31 story 4: a cluster is accepted', async () => {
  const { path, values, words } = await parsed(`% clusteradm accept \\
     --clusters managed-0`)
  assert.deepEqual([path, words, values['clusters']], [['accept'], [], ['managed-0']])
})

test('R1.2 R1.3 strategies are said in many ways and written in one', async () => {
  for (const said of [
    'init --registration-auth csr,aws-irsa',
    'init --registration-auth=csr --registration-auth=aws-irsa',
    'init --registration-drivers awsirsa,csr',
    'init --registration_drivers=csr --registration-auth awsirsa',
  ])
    assert.deepEqual(
      strategiesOf((await parsed(said)).values['registration-auth'] as string[]),
      ['csr', 'awsirsa'],
      said,
    )
  assert.deepEqual(strategiesOf((await parsed('init')).values['registration-auth'] as string[]), ['csr'])
})

const hubArn = 'arn:aws:eks:us-west-2:123456789012:cluster/hub'
const managedArn = 'arn:aws-us-gov:eks:us-gov-west-1:123456789012:cluster/m_1'

test('R1.39 a pattern of ARNs is read as the hub reads it: all of them as a star, none with a backreference', () => {
  const check = (pattern: string): void => {
    const said = words(
      `--registration-auth aws-irsa --hub-cluster-arn ${hubArn} --feature-gates ManagedClusterAutoApproval=true`,
    )
    const { values, given } = parseArguments([...said, '--auto-approved-arn-patterns', pattern], hubFlags)
    checkHubFlags(values, given)
  }
  check('*')
  assert.throws(() => check('(a)\\1'), /--auto-approved-arn-patterns: /)
})

test('R1.2 what init is told becomes the spec of the ClusterManager', () => {
  const said = words(
    `init --registration-auth csr,aws-irsa,grpc --hub-cluster-arn ${hubArn} --aws-resource-tags a=b
     --feature-gates managedclusterautoapproval=true,AddonManagement=false --auto-approved-csr-identities ann,bob
     --auto-approved-arn-patterns ^arn:.* --grpc-server hub.example --resource-qos-class ResourceRequirement
     --resource-requests cpu=10m`,
  ).slice(1)
  const { values, given } = parseArguments(said, hubFlags)
  checkHubFlags(values, given)
  const arn = hubArnOf(values, { clusterName: '', context: '' })
  assert.deepEqual(hubSpec(values, given, { hubArn: arn }), {
    registrationConfiguration: {
      registrationDrivers: [
        { authType: 'csr', csr: { autoApprovedIdentities: ['ann', 'bob'] } },
        {
          authType: 'awsirsa',
          awsirsa: { hubClusterArn: hubArn, tags: ['a=b'], autoApprovedIdentities: ['^arn:.*'] },
        },
        { authType: 'grpc', grpc: {} },
      ],
      featureGates: [{ feature: 'ManagedClusterAutoApproval', mode: 'Enable' }],
    },
    addOnManagerConfiguration: { featureGates: [{ feature: 'AddonManagement', mode: 'Disable' }] },
    resourceRequirement: { type: 'ResourceRequirement', resourceRequirements: { requests: { cpu: '10m' } } },
    serverConfiguration: {
      endpointsExposure: [{ protocol: 'grpc', grpc: { type: 'hostname', hostname: { host: 'hub.example' } } }],
    },
  })
})

test('R1.2 a hub that exists keeps the strategies and gates that nobody speaks of', () => {
  const present = {
    registrationConfiguration: {
      registrationDrivers: [{ authType: 'grpc' as const }],
      featureGates: [{ feature: 'ResourceCleanup', mode: 'Disable' as const }],
    },
  }
  const { values, given } = parseArguments(['--feature-gates', 'DefaultClusterSet=false'], hubFlags)
  assert.deepEqual(hubSpec(values, given, { present }).registrationConfiguration, {
    registrationDrivers: [{ authType: 'grpc' }],
    featureGates: [
      { feature: 'ResourceCleanup', mode: 'Disable' },
      { feature: 'DefaultClusterSet', mode: 'Disable' },
    ],
  })
})

test('R1.9 flags of init that do not go together are refused by name', () => {
  const refusal = (text: string): string => {
    const { values, given } = parseArguments(words(text), hubFlags)
    try {
      checkHubFlags(values, given)
    } catch (error) {
      return (error as Error).message
    }
    return ''
  }
  assert.equal(refusal('--hub-cluster-arn x'), '--hub-cluster-arn needs --registration-auth aws-irsa')
  assert.match(refusal('--auto-approved-csr-identities ann'), /needs --feature-gates ManagedClusterAutoApproval=true/)
  assert.match(
    refusal('--feature-gates DefaultClusterSets=true'),
    /there is no gate DefaultClusterSets; did you mean DefaultClusterSet\?/,
  )
  assert.match(
    refusal('--feature-gates DefaultClusterSet=on'),
    /write DefaultClusterSet=true or DefaultClusterSet=false/,
  )
  assert.match(refusal('--resource-requests cpu=1'), /need --resource-qos-class ResourceRequirement/)
  assert.match(refusal('--registration-auth grpc --grpc-endpoint-type hostname'), /needs --grpc-server/)
  assert.equal(refusal('--registration-auth aws-irsa,csr'), '')
})

test('R1.14 what join is told becomes the spec of the Klusterlet; its own ARN comes from a flag or the kubeconfig', () => {
  const said = words(
    `--hub-apiserver https://hub --cluster-name c1 --registration-auth awsirsa --hub-cluster-arn ${hubArn}
     --klusterlet-annotation team=a --klusterlet-annotation agent.open-cluster-management.io/x=y --singleton
     --client-cert-expiration-seconds 3600 --addon-kubeclient-registration-auth token --addon-token-expiration-seconds 7200
     --feature-gates ClusterClaim=false,RawFeedbackJsonString=true`,
  )
  const { values, given } = parseArguments(said, joinFlags)
  checkJoinFlags(values, given)
  const own = managedArnOf(values, { clusterName: managedArn, context: 'x' })
  assert.deepEqual(klusterletSpec(values, given, { managedArn: own, namespace: 'ns', externalUrl: 'https://me' }), {
    clusterName: 'c1',
    namespace: 'ns',
    deployOption: { mode: 'Singleton' },
    externalServerURLs: [{ url: 'https://me' }],
    registrationConfiguration: {
      registrationDriver: {
        authType: 'awsirsa',
        awsIrsa: { hubClusterArn: hubArn, managedClusterArn: managedArn },
      },
      clientCertExpirationSeconds: 3600,
      clusterAnnotations: { 'agent.open-cluster-management.io/team': 'a', 'agent.open-cluster-management.io/x': 'y' },
      addOnKubeClientRegistrationDriver: { authType: 'token', token: { expirationSeconds: 7200 } },
      featureGates: [{ feature: 'ClusterClaim', mode: 'Disable' }],
    },
    workConfiguration: { featureGates: [{ feature: 'RawFeedbackJsonString', mode: 'Enable' }] },
  })
  assert.throws(() => managedArnOf(values, { clusterName: 'kind', context: 'x' }), /--managed-cluster-arn is missing/)
})
