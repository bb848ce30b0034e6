import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError, ConnectionError } from '../../../kube/index.ts'
import { doubtfulLifetime, impossibleLifetime, lifetimeOf } from './lifetime.ts'
import { whyNoToken } from './request.ts'

const request = { server: 'https://hub', source: 'test', method: 'POST', path: '/token' }
const account = { namespace: 'c1', account: 'c1-a-agent', uid: 'u' }
const answer = (status: number, reason: string, details = {}): ApiError =>
  new ApiError(request, status, { reason, message: 'so it is', details })

test('R2.28 R2.43 R2.44 every way in which a TokenRequest can fail has a reason, and words that name what to mend', () => {
  const cases: [unknown, string, RegExp][] = [
    [answer(401, 'Unauthorized'), 'ClusterCredentialRefused', /cluster's own credential/],
    [answer(403, 'Forbidden'), 'NotAllowed', /c1\/c1-a-agent.*RoleBinding/],
    [answer(404, 'NotFound', { name: 'c1-a-agent' }), 'AccountMissing', /c1\/c1-a-agent does not exist/],
    [answer(404, 'NotFound'), 'TokenRequestUnsupported', /older than Kubernetes 1\.20/],
    [answer(422, 'Invalid'), 'LifetimeRefused', /--addon-token-expiration-seconds.*600.*so it is/],
    [answer(429, 'TooManyRequests'), 'HubBusy', /busy/],
    [answer(503, 'ServiceUnavailable'), 'HubUnreachable', /does not answer/],
    [new ConnectionError(request, { code: 'ECONNREFUSED', why: 'nobody', next: 'look' }), 'HubUnreachable', /nobody/],
    [new Error('odd'), 'RequestFailed', /odd/],
  ]
  for (const [error, reason, message] of cases) {
    const why = whyNoToken(error, account)
    assert.equal(why.reason, reason)
    assert.match(why.message, message)
  }
})

test('R2.8 R2.9 the lifetime: one year unless told, a warning below an hour, and the field is named where no server would take it', () => {
  assert.equal(lifetimeOf(undefined), 31_536_000)
  assert.equal(lifetimeOf(0), 31_536_000)
  assert.equal(lifetimeOf(3600), 3600)
  assert.equal(doubtfulLifetime(3600), undefined)
  assert.match(doubtfulLifetime(600)!.message, /--addon-token-expiration-seconds.*600.*3600/)
  for (const [seconds, reason] of [
    [599, 'LifetimeTooShort'],
    [-5, 'LifetimeTooShort'],
    [3600.5, 'LifetimeNotWhole'],
    [Number.NaN, 'LifetimeNotWhole'],
    [2 ** 32 + 1, 'LifetimeTooLong'],
  ] as const) {
    assert.equal(impossibleLifetime(seconds)?.reason, reason)
    assert.match(impossibleLifetime(seconds)!.message, /--addon-token-expiration-seconds/)
  }
  for (const seconds of [600, 2 ** 32]) assert.equal(impossibleLifetime(seconds), undefined)
})
