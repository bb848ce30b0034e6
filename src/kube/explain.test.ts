import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { stubCertificate } from '../../testkit/stub-server.ts'
import type { Connection, Credential } from './connection.ts'
import { explainNetworkError, explainUnauthorized } from './explain.ts'

const connection: Connection = {
  source: 'context "dev" of ~/.kube/config',
  server: 'https://api.example:6443',
  proxyUrl: 'http://joe:s3cr3t@p@ss@proxy.example:3128',
  credentials: async () => ({}),
}
const request = { server: connection.server, source: connection.source, method: 'GET', path: '/version' }
const now = Date.parse('2026-03-01T12:00:00Z')
const date = (text: string): Date => new Date(text)
const certificate = (notAfter: string): Credential =>
  stubCertificate({ usages: ['client'], notBefore: date('2026-01-01'), notAfter: date(notAfter) })

const explain = (code: string | undefined, credential: Credential = {}, message = 'what Node says') =>
  explainNetworkError({ request, connection, credential, now }, Object.assign(new Error(message), { code }))

test('R0.39 every common failure has an explanation of its own, and names server, source and remedy', () => {
  const expected: Record<string, RegExp> = {
    ECONNREFUSED: /nothing accepts connections there; check that the API server runs/,
    ENOTFOUND: /the host name cannot be resolved; check the server address/,
    EAI_AGAIN: /the host name cannot be resolved; check the server address/,
    EHOSTUNREACH: /the host cannot be reached \(EHOSTUNREACH\); check routes/,
    ENETUNREACH: /the host cannot be reached \(ENETUNREACH\); check routes/,
    ETIMEDOUT: /the host cannot be reached \(ETIMEDOUT\); check routes/,
    PROXY_REFUSED: /what Node says; check proxy-url in the kubeconfig/,
    CERT_HAS_EXPIRED: /the server's certificate has expired; renew it/,
    CERT_NOT_YET_VALID: /the server's certificate is not valid yet; check the clocks/,
    ERR_TLS_CERT_ALTNAME_INVALID: /is for another name \(what Node says\); use a name that it holds/,
    UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      /not trusted \(UNABLE_TO_VERIFY_LEAF_SIGNATURE\); check that certificate-authority/,
    DEPTH_ZERO_SELF_SIGNED_CERT: /not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
    SELF_SIGNED_CERT_IN_CHAIN: /not trusted \(SELF_SIGNED_CERT_IN_CHAIN\)/,
    ERR_OSSL_PEM_NO_START_LINE: /cannot be used \(ERR_OSSL_PEM_NO_START_LINE\); check them in context "dev"/,
    EPROTO: /TLS failed \(what Node says\); check that the port speaks TLS/,
    ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: /TLS failed \(what Node says\)/,
    ECONNRESET: /the connection was cut; if it goes on/,
    EPIPE: /the connection was cut; if it goes on/,
    ERR_HTTP2_STREAM_ERROR: /the connection was cut; if it goes on/,
    HPE_INVALID_CONSTANT: /the answer is not HTTP \(HPE_INVALID_CONSTANT\); check the port/,
    ERR_INVALID_CHAR: /cannot be sent in a header; look for line breaks/,
    EWHATEVER: /what Node says; check the server address and the network/,
  }
  for (const [code, pattern] of Object.entries(expected)) {
    const error = explain(code)
    assert.match(error.message, pattern)
    assert.ok(error.message.startsWith('GET /version at https://api.example:6443 (context "dev" of ~/.kube/config): '))
    assert.equal(error.code, code)
  }
})

test('R0.10 only what failed before the first byte was sent is sure not to have been acted on', () => {
  const unsent = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'PROXY_REFUSED']
  for (const code of unsent) assert.equal(explain(code).notSent, true, code)
  for (const code of ['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EPROTO', 'UNKNOWN'])
    assert.equal(explain(code).notSent, false)
})

test('the text of OpenSSL is reduced to what a person can read', () => {
  const text =
    'write EPROTO 409:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number:../file.c:78:\n'
  assert.match(explain('EPROTO', {}, text).message, /: TLS failed \(wrong version number\); check/)
})

test('R0.37 a connection that fails with an expired client certificate says when it expired', () => {
  for (const code of ['ECONNRESET', 'EPIPE', 'EPROTO', 'ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED']) {
    assert.match(
      explain(code, certificate('2026-02-01T10:00:00Z')).message,
      /the client certificate of context "dev" of ~\/.kube\/config expired at 2026-02-01T10:00:00.000Z; renew it or log in again$/,
    )
    assert.doesNotMatch(explain(code, certificate('2026-04-01')).message, /expired/)
    assert.doesNotMatch(explain(code, { cert: 'rubbish', key: 'rubbish' }).message, /expired/)
  }
})

test('R0.37 a 401 is explained by what is known of the credential', () => {
  const jwt = (claims: object): string =>
    ['e30', Buffer.from(JSON.stringify(claims)).toString('base64url'), 'signature'].join('.')
  const reasons: [Credential, RegExp][] = [
    [
      certificate('2026-02-01T10:00:00Z'),
      /the client certificate expired at 2026-02-01T10:00:00.000Z; renew it or log in/,
    ],
    [certificate('2026-04-01'), /is the client certificate from this cluster's CA\?/],
    [{ cert: 'rubbish', key: 'rubbish' }, /is the client certificate from this cluster's CA\?/],
    [{ token: jwt({ exp: now / 1000 - 1 }) }, /the token expired at 2026-03-01T11:59:59.000Z; get a new one/],
    [{ token: jwt({ exp: now / 1000 + 60 }) }, /the token is expired, revoked or from another cluster; get a new one/],
    [{ token: 'opaque' }, /the token is expired, revoked or from another cluster/],
    [{ basic: { username: 'joe', password: 's3cr3t' } }, /Kubernetes no longer accepts passwords; use a token or/],
    [{}, /has no credentials: add a token, a client certificate or an exec plug-in/],
  ]
  for (const [credential, pattern] of reasons) {
    const text = explainUnauthorized(connection, credential, now)
    assert.match(text, pattern)
    assert.ok(text.includes(connection.source))
    for (const secret of [credential.token, credential.basic?.password]) assert.ok(!secret || !text.includes(secret))
  }
})

test('whatever is thrown is explained, without the password of the proxy', () => {
  const code = fc.oneof(
    fc.string(),
    fc.constantFrom('ECONNREFUSED', 'PROXY_REFUSED', 'ECONNRESET', 'ETIMEDOUT'),
    fc.constant(undefined),
  )
  fc.assert(
    fc.property(code, fc.string(), fc.string(), (code, message, cert) => {
      const { message: said } = explain(code, { cert, token: cert }, message)
      assert.ok(!said.includes('s3cr3t') && !said.includes('p@ss'))
    }),
  )
})
