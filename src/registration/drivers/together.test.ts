/** Two ways to prove who one is, on one hub that is not on EKS: it signs certificates, and runs the authenticator itself. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { asManaged } from '../../../testkit/eks/as-managed.ts'
import {
  eksCluster,
  startLocalEks,
  startManagedPlane,
  type LocalEks,
  type ManagedEks,
} from '../../../testkit/eks/index.ts'
import {
  eventually,
  sendTo,
  startAgent,
  startHub,
  type ControlPlane,
  type LanyardProcess,
} from '../../../testkit/index.ts'
import { createIrsaCluster, leftInAws, mapRolesOf } from '../../../testkit/irsa-hub.ts'
import { hasOnlyTheRulesOf, reachesOnlyItsOwn } from '../../../testkit/isolation.ts'
import { createCluster, setAccepts } from '../../../testkit/registration-hub.ts'
import { label, ManagedCluster, signer, subject } from '../../api/index.ts'
import { hubRoleName } from '../../aws/index.ts'
import {
  CertificateSigningRequest,
  clientFor,
  decoded,
  isForbidden,
  isUnauthorized,
  Secret,
  type Client,
} from '../../kube/index.ts'
import { isTrue } from '../../runtime/index.ts'
import { createRequest } from '../../runtime/pki/index.ts'

const account = '222222222222'
const limit = { timeoutMs: 180_000 }

let eks: LocalEks
let plane: ControlPlane
let managed: ManagedEks
let hub: LanyardProcess
let admin: Client
before(async () => {
  eks = await startLocalEks({ access: 'aws-auth', offEks: true, plane: { audit: false } })
  plane = await startManagedPlane(eksCluster('m1', account))
  managed = await eks.managed('m1', { account, plane })
  admin = eks.hub.client()
  hub = await startHub(eks.hub, { args: args('csr,aws-irsa'), env: await eks.hubEnvironment() })
})
after(async () => {
  await plane?.stop()
  await eks?.stop()
})

const args = (drivers: string): string[] => [
  `--registration-drivers=${drivers}`,
  `--hub-cluster-arn=${eks.hubArn}`,
  '--feature-gates=ManagedClusterAutoApproval=true',
  '--auto-approved-csr-users=bootstrap',
  `--auto-approved-arn-patterns=${managed.arn}`,
  '--farewell-seconds=2',
]

const isAvailable = (name: string): Promise<void> =>
  eventually(async () => {
    const cluster = await admin.of(ManagedCluster).find(name)
    for (const type of ['HubAcceptedManagedCluster', 'ManagedClusterJoined', 'ManagedClusterConditionAvailable'])
      assert.ok(cluster && isTrue(cluster, type), `${name} ${type}: ${JSON.stringify(cluster?.status?.conditions)}`)
  }, limit)

/** The hub as the cluster whose certificate is on this plane. */
const asCertified = async (on: ControlPlane): Promise<Client> => {
  const secret = decoded(await on.client().of(Secret, 'open-cluster-management-agent').get('hub-kubeconfig-secret'))!
  const { server, ca } = eks.hub
  const [cert, key] = [secret['tls.crt']!, secret['tls.key']!]
  return clientFor({ source: 'test', server, credentials: async () => ({ ca, cert, key }) })
}

const outcomes = async (outcome: string): Promise<number> =>
  Number(
    new RegExp(`registration_csr_total\\{[^}]*outcome="${outcome}"[^}]*\\} (\\d+)`).exec(await hub.metrics())?.[1] ?? 0,
  )

/** Somebody with the bootstrap credential asks for a certificate in the name of a cluster. */
const requestFor = (cluster: string): Promise<CertificateSigningRequest> => {
  const commonName = subject.agentUser(cluster, 'a1')
  const { csr } = createRequest({ commonName, organizations: [subject.clusterGroup(cluster), subject.managedClusters] })
  return eks.hub
    .client({ user: 'bootstrap' })
    .of(CertificateSigningRequest)
    .create({
      metadata: { generateName: `${cluster}-`, labels: { [label.clusterName]: cluster } },
      spec: {
        request: Buffer.from(csr).toString('base64'),
        signerName: signer.kubeApiServerClient,
        usages: ['digital signature', 'key encipherment', 'client auth'],
      },
    })
}

test('R1.8 R1.11 R1.39 on one hub a cluster joins by certificate and another by AWS IAM, neither with anything of the other kind', async () => {
  await sendTo(eks.hub, eks.hub)
  await sendTo(plane, eks.hub)
  // The hub manages itself by certificate.
  await startAgent(eks.hub, 'by-csr')
  await startAgent(plane, 'by-iam', { args: managed.args, env: await managed.environment() })
  await Promise.all([isAvailable('by-csr'), isAvailable('by-iam')])
  const csrs = (await admin.of(CertificateSigningRequest).list()).items
  assert.deepEqual([...new Set(csrs.map(({ metadata }) => metadata.labels?.[label.clusterName]))], ['by-csr'])
  assert.deepEqual(await leftInAws(eks), [hubRoleName(managed.pair)])
  assert.match(await mapRolesOf(admin), /system:open-cluster-management:by-iam/)
})

test('R1.8 R1.59 each reaches its own, and nothing of the other', async () => {
  const [certified, byRole] = await Promise.all([asCertified(eks.hub), asManaged(eks, managed)])
  await hasOnlyTheRulesOf('accepted', 'by-csr', { as: certified, admin })
  await hasOnlyTheRulesOf('accepted', 'by-iam', { as: byRole, admin })
  await reachesOnlyItsOwn(certified, 'by-csr', 'by-iam')
  await reachesOnlyItsOwn(byRole, 'by-iam', 'by-csr')
  certified.close()
  byRole.close()
})

test('R1.8 R1.59 no certificate is given without a person in the name of a cluster that is known by AWS IAM, whoever asks', async () => {
  // Let in, and its agent has not come yet: nobody holds the name.
  await createIrsaCluster(admin, 'waiting', `arn:aws:eks:us-west-2:${account}:cluster/waiting`)
  const before = await outcomes('waits')
  const asked = await Promise.all([requestFor('waiting'), requestFor('by-iam')])
  await eventually(async () => assert.equal(await outcomes('waits'), before + 2), limit)
  for (const { metadata } of asked) {
    const { status } = await admin.of(CertificateSigningRequest).get(metadata.name!)
    assert.deepEqual(status ?? {}, {})
  }
  await admin.of(ManagedCluster).delete('waiting')
})

test('R1.8 R1.56 one is denied, and the other does not notice', async () => {
  const byRole = await asManaged(eks, managed)
  await setAccepts(admin, 'by-iam', false)
  await eventually(async () => {
    assert.deepEqual(await leftInAws(eks), [])
    await assert.rejects(byRole.of(ManagedCluster).get('by-iam'), isUnauthorized)
  }, limit)
  const certified = await asCertified(eks.hub)
  await certified.of(ManagedCluster).get('by-csr')
  await setAccepts(admin, 'by-iam', true)
  await isAvailable('by-iam')

  await setAccepts(admin, 'by-csr', false)
  await eventually(
    () =>
      assert.rejects(
        certified.of(ManagedCluster).update({ metadata: { name: 'by-csr' } } as ManagedCluster),
        isForbidden,
      ),
    limit,
  )
  const again = await asManaged(eks, managed)
  await again.of(ManagedCluster).get('by-iam')
  for (const client of [byRole, certified, again]) client.close()
})

test('R1.11 a hub without csr approves no certificate, and tells a cluster without an ARN what it lacks', async () => {
  assert.match(await hub.metrics(), /controller="csr-approval"/)
  await hub.process.stop()
  hub = await startHub(eks.hub, { name: 'hub-2', args: args('aws-irsa'), env: await eks.hubEnvironment() })
  // Its webhooks are at another port; the API server hears of it a moment later.
  await eventually(() => createCluster(admin, 'plain'), limit)
  const { metadata } = await requestFor('plain')
  await eventually(async () => {
    const said = (await admin.of(ManagedCluster).get('plain')).status?.conditions?.[0]
    assert.match(
      said?.message ?? '',
      /has no annotation eks-managed-cluster-arn, and this hub knows clusters by AWS IAM only/,
    )
  }, limit)
  assert.doesNotMatch(await hub.metrics(), /csr-approval|registration_csr_total/)
  assert.deepEqual((await admin.of(CertificateSigningRequest).get(metadata.name!)).status ?? {}, {})
})
