import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { createAuthority, issue, newKey } from '../../../runtime/pki/index.ts'
import { csrAgentDriver } from './agent.ts'
import { pendingIn, requestName, type Recipe } from './request.ts'
import { signerHint, verdictOf } from './verdict.ts'

const start = Date.UTC(2026, 0, 1)
const hour = 3_600_000
const authority = createAuthority({ commonName: 'ca', validForMs: 1000 * hour, now: new Date(start) })
const identity = { cluster: 'c1', agent: 'a1' }
const ofC1 = {
  commonName: 'system:open-cluster-management:c1:a1',
  organizations: ['system:open-cluster-management:c1', 'system:open-cluster-management:managed-clusters'],
}
const certificate = (change: object = {}) =>
  issue(authority, {
    ...ofC1,
    usages: ['client'],
    notBefore: new Date(start),
    notAfter: new Date(start + 10 * hour),
    ...change,
  })
const secretOf = ({ cert, key }: { cert: string; key: string }) => ({ 'tls.crt': cert, 'tls.key': key })
const driver = csrAgentDriver()

test('a certificate that cannot be used is named with its fault, the first that there is', () => {
  const good = certificate()
  const why = (secret: Record<string, string>, now = start + hour): string | undefined =>
    driver.unusable(secret, { identity, now })?.reason
  assert.equal(why(secretOf(good)), undefined)
  assert.equal(why({}), 'CertificateMissing')
  assert.equal(why({ 'tls.crt': good.cert }), 'CertificateMissing')
  assert.equal(why({ 'tls.crt': 'x', 'tls.key': good.key }), 'CertificateUnreadable')
  assert.equal(why({ 'tls.crt': good.cert, 'tls.key': 'x' }), 'KeyUnreadable')
  assert.equal(why({ 'tls.crt': good.cert, 'tls.key': newKey() }), 'KeyMismatch')
  assert.equal(why(secretOf(good), start + 10 * hour), 'CertificateExpired')
  assert.equal(why(secretOf(good), start - hour), 'CertificateNotYetValid')
  assert.equal(why(secretOf(good), start - 60_000), undefined, 'clocks differ a little')
  assert.equal(why(secretOf(certificate({ commonName: 'system:open-cluster-management:c1:a2' }))), 'SubjectMismatch')
  assert.equal(why(secretOf(certificate({ organizations: ofC1.organizations.toReversed() }))), undefined)
  assert.equal(why(secretOf(certificate({ organizations: [...ofC1.organizations, 'more'] }))), 'SubjectMismatch')
  assert.equal(why(secretOf(certificate({ organizationalUnits: ['more'] }))), 'SubjectMismatch')
  const short = createAuthority({ commonName: 'short', validForMs: hour, now: new Date(start) })
  const { cert, key } = good
  assert.equal(why({ 'tls.crt': cert + short.cert, 'tls.key': key }, start + 2 * hour), 'CertificateExpired')
})

test('renewal falls between 75 and 80 % of the lifetime, never near the end, and at once for what is short or unreadable', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 400 * 24 * 3600 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (seconds, random) => {
        const life = seconds * 1000
        const secret = secretOf(certificate({ notAfter: new Date(start + life) }))
        const at = driver.renewAt(secret, () => random)
        assert.ok(at <= start + life - 30_000)
        assert.ok(at <= start + 0.8 * life)
        if (life >= 200_000) assert.ok(at >= start + 0.75 * life)
        assert.equal(driver.expiresAt(secret), start + life)
      },
    ),
    { numRuns: 30 },
  )
  assert.equal(driver.renewAt({}, Math.random), 0)
  assert.equal(driver.expiresAt({ 'tls.crt': 'x' }), undefined)
})

test('a lifetime that Kubernetes would refuse is refused by name', () => {
  assert.throws(() => csrAgentDriver({ expirationSeconds: 599 }), /clientCertExpirationSeconds is 599.*600/)
  csrAgentDriver({ expirationSeconds: 600 })
})

const recipe: Recipe = {
  subject: { user: ofC1.commonName, groups: ofC1.organizations },
  signerName: 'kubernetes.io/kube-apiserver-client',
  prefix: 'c1',
  labels: {},
  approver: 'somebody',
}

test('the name of a CSR follows from key and content, and is a name whatever the cluster is called', () => {
  const key = newKey()
  const name = requestName(recipe, key)
  assert.equal(requestName(recipe, key), name)
  const others = [
    requestName(recipe, newKey()),
    requestName({ ...recipe, signerName: 'x/y' }, key),
    requestName({ ...recipe, dnsNames: ['x'] }, key),
    requestName({ ...recipe, subject: { ...recipe.subject, groups: ['x'] } }, key),
  ]
  assert.equal(new Set([name, ...others]).size, 5)
  for (const prefix of ['c1', 'a'.repeat(63), `${'a'.repeat(41)}-b`, 'addon-c1-my.addon'])
    assert.match(requestName({ ...recipe, prefix }, key), /^(?=.{1,63}$)[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
})

test('a pending request is taken up again only if it asks for the same', () => {
  const key = newKey()
  const saved = { 'pending.key': key, 'pending.csr': requestName(recipe, key) }
  assert.deepEqual(pendingIn(recipe, saved), { key, name: saved['pending.csr'] })
  assert.equal(pendingIn({ ...recipe, subject: { ...recipe.subject, user: 'x' } }, saved), undefined)
  assert.equal(pendingIn(recipe, { ...saved, 'pending.key': 'x' }), undefined)
  assert.equal(pendingIn(recipe, {}), undefined)
})

test('a certificate that the hub issued is checked before it is used', () => {
  const made = certificate()
  const judge = (cert: string, key: string, now = start + hour) =>
    verdictOf(
      {
        metadata: { name: 'c1-x' },
        spec: { request: '', signerName: '' },
        status: { certificate: Buffer.from(cert).toString('base64') },
      },
      { recipe, pending: { key, name: 'c1-x' }, server: 'https://hub.example', now },
    )
  const refused = (cert: string, key: string, now?: number): string => {
    const verdict = judge(cert, key, now)
    return verdict.kind === 'refused' ? verdict.why : verdict.kind
  }
  assert.equal(judge(made.cert, made.key).kind, 'issued')
  assert.match(refused(made.cert, newKey()), /another key/)
  const other = certificate({ commonName: 'system:open-cluster-management:c2:a1' })
  assert.match(refused(other.cert, other.key), /is for system:open-cluster-management:c2:a1/)
  assert.match(refused('x', made.key), /not a chain/)
  assert.match(refused(made.cert, made.key, start + 100 * hour), /expired/)
})

test('an EKS hub is recognised by its address, and aws-irsa is named', () => {
  assert.match(signerHint('https://ABC.gr7.eu-west-1.eks.amazonaws.com'), /^this hub is EKS.*aws-irsa/)
  assert.match(signerHint('https://hub.example:6443'), /aws-irsa/)
  assert.doesNotMatch(signerHint('https://eks.amazonaws.com.evil.example'), /^this hub is EKS/)
})
