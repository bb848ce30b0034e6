import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hubBySdk, kubectlByAwsCli } from '../../../../testkit/eks/aws-tools.ts'
import {
  eksCluster,
  startLocalEks,
  startManagedPlane,
  type LocalEks,
  type LocalEksOptions,
} from '../../../../testkit/eks/index.ts'
import { eventually, sendTo, startAgent, startHub, type ControlPlane } from '../../../../testkit/index.ts'
import { grantsOf, leftInAws, mapRolesOf } from '../../../../testkit/irsa-hub.ts'
import { objectsOf } from '../../../../testkit/registration-hub.ts'
import { annotation, ManagedCluster, ManifestWork } from '../../../api/index.ts'
import { hubRoleArn, hubRoleName, roleSuffix } from '../../../aws/index.ts'
import {
  CertificateSigningRequest,
  ConfigMap,
  decoded,
  parseKubeconfig,
  Secret,
  type Client,
} from '../../../kube/index.ts'
import { isTrue } from '../../../runtime/index.ts'

const account = '222222222222'
const agentNamespace = 'open-cluster-management-agent'
const generous = { timeoutMs: 120_000 }

const foreign = `# made by somebody else
- rolearn: arn:aws:iam::111111111111:role/nodes
  username: system:node:{{EC2PrivateDNSName}}
  groups: [ system:nodes ]
`

const work = (cluster: string): ManifestWork => ({
  metadata: { name: 'first', namespace: cluster },
  spec: {
    workload: {
      manifests: [
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'hello', namespace: 'default' }, data: { a: 'b' } },
      ],
    },
  },
})

/** The other partitions, and approval by itself, are in testkit/e2e-irsa.test.ts. */
const cases: LocalEksOptions[] = [
  { access: 'aws-auth', partition: 'aws' },
  { access: 'access-entries', partition: 'aws' },
]

for (const options of cases)
  test(`R1.1 R1.28 R1.33 R1.34 R1.39 R1.40 R1.46 R1.47 R1.48 R1.49 R1.56 a cluster joins by ${options.access} in ${options.partition}, works, leaves, and nothing is left of it`, async () => {
    await using eks = await startLocalEks(options)
    await using plane = await startManagedPlane(eksCluster('m1', account, options.partition))
    const admin = eks.hub.client()
    const metadata = { name: 'aws-auth', namespace: 'kube-system' }
    await admin.of(ConfigMap, 'kube-system').create({ metadata, data: { mapRoles: foreign, mapUsers: '[]' } })
    const managed = await eks.managed('m1', { account, plane })
    await startHub(eks.hub, {
      args: [...eks.hubArgs, '--farewell-seconds=60'],
      env: await eks.hubEnvironment(),
    })
    await sendTo(plane, eks.hub)
    const agent = await startAgent(plane, 'c1', { args: managed.args, env: await managed.environment() })
    await acceptAsPerson(admin)
    await agent.process.ready()

    const joined = await eventually.watching(
      admin.of(ManagedCluster),
      ([cluster]) => {
        for (const type of ['HubAcceptedManagedCluster', 'ManagedClusterJoined', 'ManagedClusterConditionAvailable'])
          assert.ok(cluster && isTrue(cluster, type), `${type} of ${JSON.stringify(cluster?.status?.conditions)}`)
        return cluster
      },
      generous,
    )
    assert.equal(joined!.metadata.annotations?.[annotation.eksManagedClusterArn], managed.arn)
    assert.equal(joined!.metadata.annotations?.[annotation.managedClusterArn], managed.arn)
    assert.equal(joined!.metadata.annotations?.[annotation.managedClusterIamRoleSuffix], roleSuffix(managed.pair))
    assert.deepEqual((await admin.of(CertificateSigningRequest).list()).items, [])
    const kubeconfig = await hasKubeconfig(plane, eks, managed.pair)
    if (options.partition === 'aws') {
      // What AWS's own tools make of it, as they are.
      const person = { eks, managed, plane, kubeconfig }
      const printed = await kubectlByAwsCli(['get', 'managedcluster', 'c1', '-o', 'name'], person)
      assert.equal(printed.trim(), 'managedcluster.cluster.open-cluster-management.io/c1')
      await assert.rejects(kubectlByAwsCli(['get', 'secrets', '-A'], person), /Forbidden.*open-cluster-management:c1"/)
      assert.equal(await hubBySdk(hubRoleArn(managed.pair), person), eks.hubArn)
    }

    await admin.of(ManifestWork, 'c1').create(work('c1'))
    await eventually(async () => {
      assert.deepEqual((await plane.client().of(ConfigMap, 'default').get('hello')).data, { a: 'b' })
      assert.ok(isTrue(await admin.of(ManifestWork, 'c1').get('first'), 'Applied'))
    }, generous)
    const mapping = (await mapRolesOf(admin)).includes(hubRoleName(managed.pair))
    assert.equal(mapping, options.access === 'aws-auth')

    await admin.of(ManagedCluster).delete('c1')
    await eventually(async () => {
      assert.equal(await admin.of(ManagedCluster).find('c1'), undefined)
      assert.deepEqual(await leftInAws(eks), [])
      assert.equal(await mapRolesOf(admin), foreign)
      assert.deepEqual(await objectsOf(admin, 'c1'), [])
      assert.deepEqual(await grantsOf(admin), [])
    }, generous)
    assert.equal(await plane.client().of(ConfigMap, 'default').find('hello'), undefined)
  })

/** What a person does who lets the hub's own role make what is needed. */
const acceptAsPerson = async (admin: Client): Promise<void> => {
  await eventually.watching(
    admin.of(ManagedCluster),
    (all) => all.some(({ metadata }) => metadata.name === 'c1'),
    generous,
  )
  await admin.of(ManagedCluster).patch('c1', { merge: { spec: { hubAcceptsClient: true } } })
}

/** The secret's kubeconfig: as `aws eks update-kubeconfig --role-arn` would write its user. */
const hasKubeconfig = async (
  plane: ControlPlane,
  eks: LocalEks,
  pair: Parameters<typeof hubRoleName>[0],
): Promise<string> => {
  const secret = decoded(await plane.client().of(Secret, agentNamespace).get('hub-kubeconfig-secret'))!
  assert.deepEqual(Object.keys(secret).sort(), ['agent-name', 'cluster-name', 'kubeconfig'])
  const { users, clusters } = await parseKubeconfig(secret['kubeconfig']!, { source: 'test' })
  assert.equal([...clusters.values()][0]?.value.server, eks.hub.server)
  const { exec } = [...users.values()][0]!.value
  assert.equal(exec?.command, 'aws')
  const roleArn = `arn:${pair.hub.partition}:iam::${pair.hub.account}:role/${hubRoleName(pair)}`
  const said = `--region ${pair.hub.region} eks get-token --cluster-name hub --output json --role-arn ${roleArn}`
  assert.deepEqual(exec.args, said.split(' '))
  return secret['kubeconfig']!
}
