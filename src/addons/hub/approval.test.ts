import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { after, before, test, type TestContext } from 'node:test'
import {
  asCluster,
  certificateOf,
  conditionOf,
  createClusters,
  declare,
  enable,
  installHubCrds,
  requestCertificate,
  runAddOnHub,
  type CertificateAsk,
} from '../../../testkit/add-on-hub.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { setAccepts } from '../../../testkit/registration-hub.ts'
import { conditionType, ManagedClusterAddOn } from '../../api/index.ts'
import { CertificateSigningRequest, Event, Namespace, Secret, type Client } from '../../kube/index.ts'
import { createAuthority } from '../../runtime/pki/index.ts'
import { addOnDnsName, addOnGroup, defaultCustomUser, defaultSubject } from '../contract.ts'
import { defineAddOn } from './definition.ts'
import { authorityIn } from './template.ts'

let plane: ControlPlane
let admin: Client
before(async () => {
  plane = await startControlPlane({ audit: false })
  admin = plane.client()
  await installHubCrds(admin)
  await admin.of(Namespace).create({ metadata: { name: at.namespace } })
  await createAuthoritySecret()
})
after(() => plane.stop())

const signerName = 'example.com/tunnel'
const ownSigner = 'example.com/plain'
const at = { namespace: 'signers', name: 'tunnel-ca' }
const authority = createAuthority({ commonName: 'tunnel', validForMs: 7 * 86_400_000, now: new Date() })

const createAuthoritySecret = () =>
  admin.of(Secret, at.namespace).create({
    metadata: at,
    type: 'kubernetes.io/tls',
    stringData: { 'tls.crt': authority.cert, 'tls.key': authority.key },
  })

const hello = () =>
  defineAddOn({
    name: 'hello',
    manifests: () => [],
    registrations: [
      { type: 'kubeClient' },
      {
        type: 'customSigner',
        signerName,
        authority: authorityIn(admin, at),
        subject: (cluster) => ({ user: `tunnel-${cluster}`, groups: ['tunnels'], organizationUnits: [cluster] }),
      },
      { type: 'customSigner', signerName: ownSigner, authority: authorityIn(admin, at) },
    ],
  })

const scene = async (t: TestContext, cluster: string) => {
  await runAddOnHub(t, plane, { addOns: [hello()] })
  await createClusters(admin, [cluster])
  await enable(admin, cluster, 'hello')
  const agent = asCluster(plane, cluster)
  const subject = defaultSubject('csr', cluster, 'hello')
  await declare(agent, cluster, 'hello', 'csr', { user: subject.user, groups: [...subject.groups] })
  return { agent, ask: { cluster, addOn: 'hello', ...subject } satisfies CertificateAsk }
}

const verdictOf = (name: string): Promise<string> =>
  eventually(
    async () => {
      const { status } = await admin.of(CertificateSigningRequest).get(name)
      const [condition] = status?.conditions ?? []
      if (!condition) throw new Error('nothing is decided')
      return `${condition.type} ${condition.reason}`
    },
    { timeoutMs: 60_000 },
  )

test('R2.29 an add-on that asks for its own identity with the certificate of its cluster gets it', async (t) => {
  const { agent, ask } = await scene(t, 'good')
  const { name } = await requestCertificate(agent, { ...ask, dnsNames: [addOnDnsName('hello')] })
  const { subject } = new X509Certificate(await certificateOf(agent, name))
  assert.match(subject, /CN=system:open-cluster-management:cluster:good:addon:hello:agent:hello/)
  assert.equal(await verdictOf(name), 'Approved AutoApprovedByHubCSRApprovingController')
})

test('R2.37 whoever asks for more than the add-on is, or for another one, is denied for good', async (t) => {
  const { agent, ask } = await scene(t, 'strict')
  await createClusters(admin, ['strict1'])
  await enable(admin, 'strict1', 'hello')
  const other = asCluster(plane, 'strict1')
  const hostile: [string, Client, CertificateAsk][] = [
    ['ForeignOrganization', agent, { ...ask, groups: [...ask.groups, 'system:nodes'] }],
    ['ForeignOrganization', agent, { ...ask, groups: [...ask.groups, addOnGroup('strict1', 'hello')] }],
    ['ForeignOrganization', agent, { ...ask, groups: [...ask.groups, 'system:open-cluster-management:strict'] }],
    ['MissingOrganization', agent, { ...ask, groups: [] }],
    ['BadCommonName', agent, { ...ask, user: 'system:admin' }],
    ['BadCommonName', agent, { ...ask, user: `${ask.user}:x` }],
    ['BadCommonName', agent, { ...ask, user: defaultSubject('csr', 'strict1', 'hello').user }],
    ['BadCommonName', agent, { ...ask, user: defaultSubject('csr', 'strict', 'hell').user }],
    ['UnexpectedAlternativeNames', agent, { ...ask, dnsNames: ['kubernetes.default.svc'] }],
    [
      'UnexpectedUsages',
      agent,
      { ...ask, usages: ['digital signature', 'key encipherment', 'server auth', 'client auth'] },
    ],
    ['RequestedByAnotherIdentity', other, ask],
  ]
  for (const [reason, client, request] of hostile) {
    const { name } = await requestCertificate(client, request)
    assert.equal(await verdictOf(name), `Denied ${reason}`)
  }
})

/** Shows that the approver has been at work since, and left this one alone. */
const isLeftAlone = async (agent: Client, ask: CertificateAsk, name: string): Promise<void> => {
  const later = await requestCertificate(agent, { ...ask, user: 'system:admin' })
  assert.match(await verdictOf(later.name), /^Denied/)
  const { status } = await admin.of(CertificateSigningRequest).get(name)
  assert.equal(status?.conditions, undefined)
}

test('R2.29 a request waits while its add-on declares tokens, and is approved when it does not', async (t) => {
  const { agent, ask } = await scene(t, 'patient')
  await declare(agent, 'patient', 'hello', 'token', { user: defaultSubject('token', 'patient', 'hello').user })
  const { tokenInfrastructureReady } = conditionType.addOn
  await conditionOf(admin, 'patient', 'hello', tokenInfrastructureReady, (one) => one?.status === 'True')
  const { name } = await requestCertificate(agent, ask)
  await isLeftAlone(agent, ask, name)

  await declare(agent, 'patient', 'hello', 'csr', { user: ask.user, groups: [...ask.groups] })

  assert.match(await verdictOf(name), /^Approved/)
})

test('R2.37 a request that a person made, and one of a denied cluster, are left to a person', async (t) => {
  const { agent, ask } = await scene(t, 'human')
  const { name } = await requestCertificate(admin, ask)
  await isLeftAlone(agent, ask, name)

  const early = await requestCertificate(agent, ask)
  assert.match(await verdictOf(early.name), /^Approved/)
  // The cluster's role is reduced at once; a request that it made before must not be approved after.
  const impostor = plane.client({
    user: 'system:open-cluster-management:human:agent1',
    groups: ['system:open-cluster-management:human', 'system:masters'],
  })
  await setAccepts(admin, 'human', false)
  const { registrationApplied } = conditionType.addOn
  await conditionOf(admin, 'human', 'hello', registrationApplied, (one) => one?.status === 'False')
  const late = await requestCertificate(impostor, ask)
  await isLeftAlone(impostor, ask, late.name)
})

test('R2.5 an add-on of its own signer gets a certificate with the subject that the definition names, and no other', async (t) => {
  const { agent } = await scene(t, 'signed')
  const custom = { cluster: 'signed', addOn: 'hello' }
  const tunnel = { ...custom, signerName, user: 'tunnel-signed', groups: ['tunnels'], organizationalUnits: ['signed'] }
  const plain = {
    ...custom,
    signerName: ownSigner,
    user: defaultCustomUser('signed', 'hello'),
    expirationSeconds: 3600,
  }

  const ofTunnel = await requestCertificate(agent, tunnel)
  const certificate = new X509Certificate(await certificateOf(agent, ofTunnel.name))
  assert.ok(certificate.verify(new X509Certificate(authority.cert).publicKey))
  assert.deepEqual(certificate.subject.split('\n').toSorted(), ['CN=tunnel-signed', 'O=tunnels', 'OU=signed'])

  const ofPlain = await requestCertificate(agent, plain)
  const { validToDate, validFromDate } = new X509Certificate(await certificateOf(agent, ofPlain.name))
  assert.equal(validToDate.getTime() - validFromDate.getTime(), 3_660_000) // a minute earlier, for clocks that differ

  const wrong = [
    { ...tunnel, organizationalUnits: [] },
    { ...tunnel, organizationalUnits: ['other'] },
    { ...tunnel, user: 'tunnel-other' },
    { ...tunnel, groups: ['tunnels', 'admins'] },
    { ...plain, groups: ['admins'] },
    { ...plain, user: 'admin' },
  ]
  for (const ask of wrong) {
    const { name } = await requestCertificate(agent, ask)
    assert.equal(await verdictOf(name), 'Denied WrongSubject')
  }
})

test('R2.5 R2.37 what a person approved by mistake is not signed', async (t) => {
  const hub = await runAddOnHub(t, plane, { addOns: [hello()] })
  await createClusters(admin, ['mistake'])
  await enable(admin, 'mistake', 'hello')
  await hub.stop()
  const agent = asCluster(plane, 'mistake')
  const { name } = await requestCertificate(agent, {
    cluster: 'mistake',
    addOn: 'hello',
    signerName: ownSigner,
    user: 'admin',
  })
  await plane.kubectl(['certificate', 'approve', name])
  await runAddOnHub(t, plane, { addOns: [hello()] })
  await eventually(
    async () => {
      const { status } = await admin.of(CertificateSigningRequest).get(name)
      assert.deepEqual(status?.conditions?.map(({ type }) => type).toSorted(), ['Approved', 'Failed'])
      assert.equal(status?.certificate, undefined)
    },
    { timeoutMs: 60_000 },
  )
})

test('R2.5 a signer whose authority is missing says so in an event, and signs once it is there', async (t) => {
  const { agent } = await scene(t, 'late')
  await admin.of(Secret, at.namespace).delete(at.name)
  const plain = { cluster: 'late', addOn: 'hello', signerName: ownSigner, user: defaultCustomUser('late', 'hello') }
  const { name } = await requestCertificate(agent, plain)
  await eventually(async () => {
    const { items } = await admin.of(Event, 'late').list()
    const notes = items.filter(({ reason }) => reason === 'SigningFailed').map(({ note }) => note)
    assert.match(notes.join(), /Secret signers\/tunnel-ca does not exist; create it/)
  })
  await createAuthoritySecret()
  await admin.of(ManagedClusterAddOn, 'late').delete('hello')
  await enable(admin, 'late', 'hello')
  assert.match(await certificateOf(agent, name), /BEGIN CERTIFICATE/)
})
