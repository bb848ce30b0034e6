import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  ClusterPermission,
  crds,
  installCrds,
  label,
  ManagedCluster,
  ManagedClusterAddOn,
  ManagedServiceAccount,
  ManifestWork,
} from '../../api/index.ts'
import { CertificateSigningRequest, Lease, Namespace, type Client } from '../../kube/index.ts'
import { createRequest } from '../../runtime/pki/index.ts'
import { eventually, runCli, startControlPlane, type CliResult, type ControlPlane } from '../../../testkit/index.ts'
import type { ClusterFacts } from './facts.ts'

let plane: ControlPlane
let client: Client
before(async () => {
  plane = await startControlPlane({ audit: false })
  client = plane.client()
  await installCrds(client, crds({ conversion: 'none' }), { fieldManager: 'test' })
  await fill()
})
after(() => plane?.stop())

const describe = (...words: string[]): Promise<CliResult> =>
  runCli(['describe', 'cluster', ...words, '--kubeconfig', plane.kubeconfig])

const said = (type: string, status: 'True' | 'False', message = 'so it is') => ({
  type,
  status,
  reason: 'Because',
  message,
  lastTransitionTime: '2026-05-01T10:00:00Z',
})
const withStatus = async <T extends { metadata: { name?: string | undefined; namespace?: string | undefined } }>(
  of: { create(object: T): Promise<T>; patch(name: string, patch: object, options: object): Promise<T> },
  object: T,
  status: object,
): Promise<void> => {
  await of.create(object)
  await of.patch(object.metadata.name!, { merge: { status } }, { subresource: 'status' })
}

/** A hub that knows a lot of one cluster. */
const fill = async (): Promise<void> => {
  const here = { namespace: 'c1' }
  const holder = { 'registration.lanyard.io/agent': 'a1' }
  await client.of(Namespace).create({ metadata: { name: 'c1', annotations: holder } })
  const arn = 'arn:aws:eks:us-west-2:123456789012:cluster/c1'
  await withStatus(
    client.of(ManagedCluster),
    {
      metadata: {
        name: 'c1',
        labels: { [label.clusterSet]: 'prod' },
        annotations: { 'eks-managed-cluster-arn': arn },
      },
      spec: { hubAcceptsClient: true },
    },
    {
      version: { kubernetes: 'v1.36.3' },
      clusterClaims: [{ name: 'id.k8s.io', value: 'id-1' }],
      conditions: [
        said('ManagedClusterJoined', 'True'),
        said(
          'ClusterCertificateRotated',
          'True',
          'client certificate rotated starting from 2026-05-01T00:00:00Z to 2027-05-01T00:00:00Z',
        ),
      ],
    },
  )
  await client.of(Lease).create({
    metadata: { ...here, name: 'managed-cluster-lease' },
    spec: { renewTime: '2026-05-01T11:59:00.000000Z' },
  })
  await withStatus(
    client.of(ManagedClusterAddOn, 'c1'),
    { metadata: { ...here, name: 'logs' } },
    {
      namespace: 'logs',
      registrations: [
        {
          type: 'kubeClient',
          kubeClient: { driver: 'token', subject: { user: 'system:serviceaccount:c1:logs-agent' } },
        },
      ],
      conditions: [
        said('Available', 'True'),
        said('AddonTokenRefreshed', 'True', 'Addon token refreshed, expires at 2030-01-02T03:04:05Z'),
      ],
    },
  )
  await withStatus(
    client.of(ManifestWork, 'c1'),
    { metadata: { ...here, name: 'shop' }, spec: { workload: { manifests: [] } } },
    { conditions: [said('Applied', 'False', '1 of 1 manifests failed')] },
  )
  await withStatus(
    client.of(ClusterPermission, 'c1'),
    { metadata: { ...here, name: 'readers' }, spec: { clusterRole: { rules: [] } } },
    {
      conditions: [said('Authorized', 'True')],
      authorization: { wanted: 'x', granted: 'x', by: 'ann', how: 'Author' },
    },
  )
  await withStatus(
    client.of(ManagedServiceAccount, 'c1'),
    { metadata: { ...here, name: 'reader' }, spec: {} },
    {
      expirationTimestamp: '2030-01-01T00:00:00Z',
      tokenSecretRef: { name: 'reader', lastRefreshTimestamp: '2026-05-01T00:00:00Z' },
      conditions: [said('TokenReported', 'True')],
    },
  )
}

const clock = { now: () => Date.parse('2026-05-01T12:00:00Z'), after: () => () => {} }

test('R1.67 describe cluster shows identity, credentials, conditions, add-ons, works, permissions and service accounts on one page', async () => {
  const { code, out, err } = await runCli(['describe', 'cluster', 'c1', '--kubeconfig', plane.kubeconfig], { clock })
  assert.equal(code, 0, err)
  for (const line of [
    /^Cluster c1$/m,
    /^ {2}Set: +prod$/m,
    /^ {2}Heartbeat: +2026-05-01T11:59:00\.000000Z \(60s ago\)$/m,
    /^ {2}Strategy: +awsirsa$/m,
    /^ {2}ARN: +arn:aws:eks:us-west-2:123456789012:cluster\/c1$/m,
    /^ {2}Cluster id: +id-1$/m,
    /^ {2}Agent: +a1$/m,
    /^ {2}Accepted: +yes$/m,
    /^ {2}Expires: +2027-05-01T00:00:00Z \(in 364d\)$/m,
    /^ {2}ManagedClusterJoined: True \(so it is\)$/m,
    /^ {2}logs +True +logs +token +system:serviceaccount:c1:logs-agent +2030-01-02T03:04:05Z/m,
    /^ {2}shop +0 +False +Unknown +1 of 1 manifests failed$/m,
    /^ {2}readers +True +ann +Unknown$/m,
    /^ {2}reader +True +2030-01-01T00:00:00Z \(in \d+d\) +reader +true$/m,
  ])
    assert.match(out, line)
})

test('R1.67 describe cluster prints the same as data', async () => {
  const facts = JSON.parse((await describe('c1', '-o', 'json')).out) as ClusterFacts
  assert.equal(facts.identity.strategy, 'awsirsa')
  assert.deepEqual(
    facts.addOns.map(({ credentials }) => credentials[0]?.expires),
    ['2030-01-02T03:04:05Z'],
  )
  assert.match((await describe('c1', '-o', 'yaml')).out, /\nworks:\n {2}- name: shop\n/)
})

test('R1.67 describe cluster knows when a certificate ends that the hub has just issued, and names open requests', async () => {
  const make = async (name: string): Promise<void> => {
    const { csr } = createRequest({ commonName: 'system:open-cluster-management:c1:a1', organizations: ['o'] })
    await client.of(CertificateSigningRequest).create({
      metadata: { name, labels: { [label.clusterName]: 'c1' } },
      spec: {
        request: Buffer.from(csr).toString('base64'),
        signerName: 'kubernetes.io/kube-apiserver-client',
        usages: ['client auth'],
        expirationSeconds: 3600,
      },
    })
  }
  await make('issued')
  await make('open')
  await plane.kubectl(['certificate', 'approve', 'issued'])
  const facts = await eventually(async () => {
    const now = JSON.parse((await describe('c1', '-o', 'json')).out) as ClusterFacts
    assert.deepEqual(
      now.credential.requests.map(({ name, state }) => `${name} ${state}`),
      ['issued Issued', 'open Pending'],
    )
    return now
  })
  const left = Date.parse(facts.credential.expires) - Date.now()
  assert.ok(left > 3_000_000 && left <= 3_600_000, facts.credential.expires)
})

test('R1.67 describe cluster of one that is not there names those that are', async () => {
  const { code, err } = await describe('c2')
  assert.equal(code, 1)
  assert.match(err, /there is no cluster c2\n {2}did you mean c1\? there are c1\n/)
})
