/** Certificate requests that must never be approved, and why each is refused. */
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { label, subject } from '../src/api/index.ts'
import { element, integer, octetString, oid, sequence, set, tagged, taggedBytes, text } from '../src/runtime/pki/der.ts'
import { createRequest, newKey } from '../src/runtime/pki/index.ts'
import { keyInfo, pem, signed } from '../src/runtime/pki/keys.ts'

const rsaKey = (modulusLength: number): string =>
  generateKeyPairSync('rsa', {
    modulusLength,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey
const secp256k1 = (): string =>
  generateKeyPairSync('ec', {
    namedCurve: 'secp256k1',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey

export const group = subject.clusterGroup
const both = [group('c1'), subject.managedClusters]
export const ofC1 = { commonName: subject.agentUser('c1', 'a1'), organizations: both }
const key = newKey()
export const request = (change: Partial<Parameters<typeof createRequest>[0]> = {}) =>
  createRequest({ ...ofC1, key, ...change }).csr

const attribute = (type: string, value: string) => sequence(oid(type), text(value))
const nameOf = (...attributes: [type: string, value: string][]) =>
  sequence(...attributes.map(([type, value]) => set(attribute(type, value))))
const o = (value: string) => ['2.5.4.10', value] as [string, string]
const cn = (value: string) => ['2.5.4.3', value] as [string, string]
const nameOfC1 = nameOf(...both.map(o), cn(ofC1.commonName))
/** A request with any subject and attributes at all. */
const handMade = (name: Buffer, attributes = tagged(0)): Buffer => {
  const signingKey = createPrivateKey(key)
  return signed(sequence(integer(0), name, keyInfo(createPublicKey(signingKey)), attributes), signingKey)
}
const asPem = (der: Buffer) => pem('CERTIFICATE REQUEST', der)
const asking = (id: string, value: Buffer) =>
  tagged(0, sequence(oid('1.2.840.113549.1.9.14'), set(sequence(sequence(oid(id), octetString(value))))))
const names = (...list: Buffer[]) => asking('2.5.29.17', sequence(...list))
const tampered = (): Buffer => {
  const der = handMade(nameOfC1)
  const at = der.indexOf('c1:a1')
  der[at + 1] = '2'.charCodeAt(0)
  return der
}

/** Who asks. */
export type Who =
  | 'mallory'
  | 'listed'
  | 'c1:a1'
  | 'c1:a2'
  | 'c2:a1'
  | 'c10:a1'
  | 'denied:a1'
  | 'gone:a1'
  | 'eks-c2'
  | 'stranger:a1'
/** One of them. */
export interface Hostile {
  title: string
  by: Who
  reason: string
  pem: string
  labels?: Record<string, string> | undefined
  signerName?: string
  usages?: string[]
  /** More fields of the object, such as a requester that it claims to have. */
  forged?: object
}
const named = (commonName: string, by: Who = 'mallory'): Pick<Hostile, 'by' | 'pem'> => ({
  by,
  pem: request({ commonName }),
})
const grouped = (organizations: string[]): Pick<Hostile, 'by' | 'pem'> => ({
  by: 'listed',
  pem: request({ organizations }),
})
export const user = (rest: string) => `system:open-cluster-management:${rest}`

export const hostile: Hostile[] = [
  // who asks
  { title: 'renewal of c1 by cluster c2', by: 'c2:a1', reason: 'RequestedByAnotherIdentity', pem: request() },
  { title: 'renewal of c1 by cluster c10', by: 'c10:a1', reason: 'RequestedByAnotherIdentity', pem: request() },
  { title: 'another agent of the same cluster', by: 'c1:a2', reason: 'RequestedByAnotherIdentity', pem: request() },
  {
    title: 'an EKS cluster with a group of its own',
    by: 'eks-c2',
    reason: 'RequestedByAnotherIdentity',
    pem: request(),
  },
  {
    title: 'a first request by a user that is not listed',
    by: 'mallory',
    reason: 'RequesterNotListed',
    pem: request(),
  },
  {
    title: 'a requester that claims to be the agent itself',
    by: 'mallory',
    reason: 'RequesterNotListed',
    pem: request(),
    forged: { username: ofC1.commonName, groups: both, uid: '1' },
  },
  {
    title: 'a requester that claims to be the listed user, with an extra that looks like impersonation',
    by: 'mallory',
    reason: 'RequesterNotListed',
    pem: request(),
    forged: { username: 'listed', extra: { 'authentication.kubernetes.io/impersonated-user': ['listed'] } },
  },
  {
    title: 'the agent’s own name without its groups: the review refuses it',
    by: 'stranger:a1',
    reason: 'NotPermitted',
    pem: request({ commonName: user('c3:a1'), organizations: [group('c3')] }),
    labels: { [label.clusterName]: 'c3' },
  },
  {
    title: 'renewal by a cluster that was denied',
    by: 'denied:a1',
    reason: 'ClusterNotAccepted',
    pem: request({ commonName: user('denied:a1'), organizations: [group('denied')] }),
    labels: { [label.clusterName]: 'denied' },
  },
  {
    title: 'renewal by a cluster that is gone',
    by: 'gone:a1',
    reason: 'ClusterMissing',
    pem: request({ commonName: user('gone:a1'), organizations: [group('gone')] }),
    labels: { [label.clusterName]: 'gone' },
  },
  {
    title: 'a listed user for a cluster that was denied',
    by: 'listed',
    reason: 'ClusterNotAccepted',
    pem: request({ commonName: user('denied:a1'), organizations: [group('denied')] }),
    labels: { [label.clusterName]: 'denied' },
  },
  {
    title: 'a listed user for a cluster that does not exist',
    by: 'listed',
    reason: 'ClusterMissing',
    pem: request({ commonName: user('none:a1'), organizations: [group('none')] }),
    labels: { [label.clusterName]: 'none' },
  },
  {
    title: 'a listed user, as a second agent of a cluster that has joined',
    by: 'listed',
    reason: 'HeldByAnotherAgent',
    pem: request({ commonName: user('held:a2'), organizations: [group('held')] }),
    labels: { [label.clusterName]: 'held' },
  },
  {
    title: 'a listed user, as the agent of a cluster that is connected',
    by: 'listed',
    reason: 'StillConnected',
    pem: request({ commonName: user('held:a1'), organizations: [group('held')] }),
    labels: { [label.clusterName]: 'held' },
  },
  {
    title: 'a listed user, for a cluster that joined before anybody remembered',
    by: 'listed',
    reason: 'HolderUnknown',
    pem: request({ commonName: user('old:a1'), organizations: [group('old')] }),
    labels: { [label.clusterName]: 'old' },
  },
  // which cluster
  { title: 'the name of another cluster', ...named(user('c2:a1'), 'listed'), reason: 'BadCommonName' },
  { title: 'a cluster whose name begins alike', ...named(user('c10:a1'), 'listed'), reason: 'BadCommonName' },
  { title: 'a name that is only a beginning', ...named(user('c:a1'), 'listed'), reason: 'BadCommonName' },
  { title: 'too many colons', ...named(user('c1:x:a1'), 'listed'), reason: 'BadCommonName' },
  { title: 'a colon at the end', ...named(user('c1:a1:'), 'listed'), reason: 'BadCommonName' },
  { title: 'an agent without a name', ...named(user('c1:'), 'listed'), reason: 'BadCommonName' },
  { title: 'no agent', ...named(user('c1'), 'listed'), reason: 'BadCommonName' },
  { title: 'no common name', ...named('', 'listed'), reason: 'BadCommonName' },
  { title: 'an administrator’s common name', ...named('kubernetes-admin', 'listed'), reason: 'BadCommonName' },
  { title: 'a space before the name', ...named(` ${user('c1:a1')}`, 'listed'), reason: 'BadCommonName' },
  { title: 'a space in the agent', ...named(user('c1:a 1'), 'listed'), reason: 'BadCommonName' },
  { title: 'capital letters', ...named(user('C1:a1'), 'listed'), reason: 'BadCommonName' },
  { title: 'a Cyrillic look-alike', ...named(user('\u04411:a1'), 'listed'), reason: 'BadCommonName' },
  { title: 'a full-width colon', ...named(user('c1\uff1aa1'), 'listed'), reason: 'BadCommonName' },
  { title: 'a zero-width space', ...named(user('c1:a1\u200b'), 'listed'), reason: 'BadCommonName' },
  { title: 'a zero byte', ...named(user('c1:a1\0'), 'listed'), reason: 'BadCommonName' },
  { title: 'a wildcard', ...named(user('c1:*'), 'listed'), reason: 'BadCommonName' },
  {
    title: 'a label that names another cluster than the request',
    by: 'listed',
    reason: 'ForeignOrganization',
    pem: request(),
    labels: { [label.clusterName]: 'c2' },
  },
  {
    title: 'a label that is no name of a cluster',
    by: 'listed',
    reason: 'BadClusterName',
    pem: request({ commonName: user('C_1:a1'), organizations: [group('C_1')] }),
    labels: { [label.clusterName]: 'C_1' },
  },
  {
    title: 'a cluster named like the group of all clusters',
    by: 'listed',
    reason: 'ReservedClusterName',
    pem: request({ commonName: user('managed-clusters:a1'), organizations: [group('managed-clusters')] }),
    labels: { [label.clusterName]: 'managed-clusters' },
  },
  { title: 'no label', by: 'listed', reason: 'NoClusterLabel', pem: request(), labels: {} },
  {
    title: 'an empty label',
    by: 'listed',
    reason: 'NoClusterLabel',
    pem: request(),
    labels: { [label.clusterName]: '' },
  },
  {
    title: 'the label of an add-on',
    by: 'listed',
    reason: 'AddOn',
    pem: request(),
    labels: { [label.clusterName]: 'c1', [label.addOnName]: 'x' },
  },
  // which groups
  { title: 'system:masters besides its own', ...grouped([...both, 'system:masters']), reason: 'ForeignOrganization' },
  { title: 'system:masters alone', ...grouped(['system:masters']), reason: 'ForeignOrganization' },
  { title: 'system:nodes', ...grouped([...both, 'system:nodes']), reason: 'ForeignOrganization' },
  { title: 'the group of another cluster besides', ...grouped([...both, group('c2')]), reason: 'ForeignOrganization' },
  { title: 'the group of a cluster that begins alike', ...grouped([group('c10')]), reason: 'ForeignOrganization' },
  { title: 'a group below its own', ...grouped([group('c1:admin'), ...both]), reason: 'ForeignOrganization' },
  { title: 'an empty group', ...grouped([...both, '']), reason: 'ForeignOrganization' },
  {
    title: 'the EKS group of its cluster',
    ...grouped([...both, subject.accessEntryGroup('c1')]),
    reason: 'ForeignOrganization',
  },
  { title: 'only the group of all clusters', ...grouped([subject.managedClusters]), reason: 'MissingOrganization' },
  { title: 'no group', ...grouped([]), reason: 'MissingOrganization' },
  { title: 'its group twice', ...grouped([group('c1'), group('c1')]), reason: 'RepeatedOrganization' },
  {
    title: 'a group that hides in the same SET as its own',
    by: 'listed',
    reason: 'ForeignOrganization',
    pem: asPem(
      handMade(
        sequence(
          set(attribute('2.5.4.10', group('c1')), attribute('2.5.4.10', 'system:nodes')),
          set(attribute('2.5.4.3', ofC1.commonName)),
        ),
      ),
    ),
  },
  {
    title: 'two common names, the last one harmless',
    by: 'listed',
    reason: 'RequestNotARequest',
    pem: asPem(handMade(nameOf(...both.map(o), cn('system:admin'), cn(ofC1.commonName)))),
  },
  {
    title: 'a name in an old encoding',
    by: 'listed',
    reason: 'RequestNotARequest',
    pem: asPem(
      handMade(
        sequence(
          set(attribute('2.5.4.10', group('c1'))),
          set(sequence(oid('2.5.4.3'), element(0x14, Buffer.from(ofC1.commonName)))),
        ),
      ),
    ),
  },
  {
    title: 'an organizational unit',
    by: 'listed',
    reason: 'UnexpectedOrganizationalUnit',
    pem: request({ organizationalUnits: ['x'] }),
  },
  {
    title: 'a country and a serial number in the subject',
    by: 'listed',
    reason: 'UnexpectedSubject',
    pem: asPem(handMade(nameOf(...both.map(o), cn(ofC1.commonName), ['2.5.4.6', 'DE'], ['2.5.4.5', '1']))),
  },
  // what else it asks for
  {
    title: 'a DNS name',
    by: 'listed',
    reason: 'UnexpectedAlternativeNames',
    pem: request({ dnsNames: ['hub.example'] }),
  },
  {
    title: 'an IP address',
    by: 'listed',
    reason: 'UnexpectedAlternativeNames',
    pem: request({ ipAddresses: ['10.0.0.1'] }),
  },
  {
    title: 'an e-mail address',
    by: 'listed',
    reason: 'UnexpectedAlternativeNames',
    pem: asPem(handMade(nameOfC1, names(taggedBytes(1, Buffer.from('a@b.example'))))),
  },
  {
    title: 'a URI',
    by: 'listed',
    reason: 'UnexpectedAlternativeNames',
    pem: asPem(handMade(nameOfC1, names(taggedBytes(6, Buffer.from('spiffe://hub/admin'))))),
  },
  {
    title: 'a name of another kind',
    by: 'listed',
    reason: 'UnexpectedAlternativeNames',
    pem: asPem(handMade(nameOfC1, names(taggedBytes(8, Buffer.of(42, 3))))),
  },
  {
    title: 'to be an authority',
    by: 'listed',
    reason: 'UnexpectedExtensions',
    pem: asPem(handMade(nameOfC1, asking('2.5.29.19', sequence(element(1, Buffer.of(0xff)))))),
  },
  {
    title: 'a password attribute',
    by: 'listed',
    reason: 'UnexpectedExtensions',
    pem: asPem(handMade(nameOfC1, tagged(0, sequence(oid('1.2.840.113549.1.9.7'), set(text('x')))))),
  },
  {
    title: 'the usage of a server',
    by: 'listed',
    reason: 'UnexpectedUsages',
    pem: request(),
    usages: ['client auth', 'server auth'],
  },
  {
    title: 'to sign certificates',
    by: 'listed',
    reason: 'UnexpectedUsages',
    pem: request(),
    usages: ['client auth', 'cert sign'],
  },
  { title: 'not to be a client', by: 'listed', reason: 'NotForClients', pem: request(), usages: ['digital signature'] },
  { title: 'no usage', by: 'listed', reason: 'NotForClients', pem: request(), usages: [] },
  {
    title: 'the signer of kubelets',
    by: 'listed',
    reason: 'OtherSigner',
    pem: request(),
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
  },
  {
    title: 'a signer of somebody’s own',
    by: 'listed',
    reason: 'OtherSigner',
    pem: request(),
    signerName: 'evil.example/signer',
  },
  // the bytes
  {
    title: 'a PEM of another type',
    by: 'listed',
    reason: 'RequestWrongPemType',
    pem: request().replaceAll('CERTIFICATE REQUEST', 'CERTIFICATE'),
  },
  {
    title: 'a second request behind the first',
    by: 'listed',
    reason: 'RequestSeveralPemBlocks',
    pem: request() + request({ organizations: ['system:masters'] }),
  },
  {
    title: 'a private key behind the request',
    by: 'listed',
    reason: 'RequestSeveralPemBlocks',
    pem: request() + newKey(),
  },
  { title: 'text before the request', by: 'listed', reason: 'RequestNotPem', pem: `approve me\n${request()}` },
  {
    title: 'headers in the PEM',
    by: 'listed',
    reason: 'RequestNotPem',
    pem: request().replace('-----\n', '-----\nX: y\n\n'),
  },
  { title: 'no PEM at all', by: 'listed', reason: 'RequestNotPem', pem: 'hello' },
  {
    title: 'a request of 100 KiB',
    by: 'listed',
    reason: 'RequestTooLarge',
    pem: request({ dnsNames: Array.from({ length: 2500 }, (_, i) => `name-${i}.of-a-long-list.example.com`) }),
  },
  {
    title: 'bytes behind the request',
    by: 'listed',
    reason: 'RequestNotDer',
    pem: asPem(Buffer.concat([handMade(nameOfC1), Buffer.of(0)])),
  },
  {
    title: 'a request cut short',
    by: 'listed',
    reason: 'RequestNotDer',
    pem: asPem(handMade(nameOfC1).subarray(0, 100)),
  },
  { title: 'a subject that was changed after signing', by: 'listed', reason: 'BadSignature', pem: asPem(tampered()) },
  { title: 'an RSA key of 1024 bits', by: 'listed', reason: 'WeakKey', pem: request({ key: rsaKey(1024) }) },
  { title: 'a curve that nobody else knows', by: 'listed', reason: 'WeakKey', pem: request({ key: secp256k1() }) },
]
