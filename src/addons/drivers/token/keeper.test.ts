/** The keeper of one token alone: what a hub answers that a real one never does, a secret that cannot be written, the clock. */
import assert from 'node:assert/strict'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { manualClock } from '../../../../testkit/manual-clock.ts'
import { stubHttps } from '../../../../testkit/stub-server.ts'
import type { ManagedClusterAddOn } from '../../../api/index.ts'
import { clientFor } from '../../../kube/index.ts'
import { silentLogger, type ConditionState } from '../../../runtime/index.ts'
import { TokenInfrastructureReady, tokenReadyMessage } from '../../contract.ts'
import type { Content, Present, Standing } from '../driver.ts'
import { tokenKeeper } from './index.ts'

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const lifetime = 3600

/** As the API server issues them; `serial` tells two of them apart. */
const issued = (at: number, serial: number, uid: string): string => {
  const serviceaccount = { name: 'c1-a-agent', uid }
  const claims = {
    iat: at / 1000,
    exp: at / 1000 + lifetime,
    jti: serial,
    'kubernetes.io': { namespace: 'c1', serviceaccount },
  }
  return [encode({ alg: 'RS256' }), encode(claims), 'c2ln'].join('.')
}

interface Answer {
  status: number
  body: object
}

/** A keeper whose hub answers as the test says, and whose secret is a variable. */
const startKeeper = async (t: TestContext, { tokenSeconds = lifetime } = {}) => {
  const clock = manualClock(1_000_000_000)
  const asked: unknown[] = []
  const counted: string[] = []
  const state = {
    uid: 'uid-1',
    answer: undefined as Answer | undefined,
    writable: true,
    secret: undefined as Present | undefined,
  }
  const stub = await stubHttps(t, (request, response) => {
    void text(request).then((body) => {
      asked.push(JSON.parse(body))
      const token = issued(clock.now(), asked.length, state.uid)
      const { status, body: said } = state.answer ?? { status: 201, body: { status: { token } } }
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(said))
    })
  })
  const hub = clientFor(stub.connection(), { userAgent: 'test' })
  t.after(() => hub.close())
  const write = async ({ data, annotations }: Content): Promise<void> => {
    if (!state.writable) throw new Error('the disk of etcd is full')
    const defined = (values: object): Record<string, string> =>
      Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
    state.secret = { data: defined(data), annotations: defined(annotations) }
  }
  const keeper = tokenKeeper({
    item: {
      addOn: 'a',
      type: 'kubeClient',
      driver: 'token',
      signerName: 'kubernetes.io/kube-apiserver-client',
      user: 'system:serviceaccount:c1:c1-a-agent',
      groups: [],
      organizationalUnits: [],
      namespace: 'ns',
      secret: 'a-hub-kubeconfig',
    },
    identity: { cluster: 'c1', agent: 'agent1' },
    hub,
    address: { source: 'test', server: stub.server, clusterEntry: 'hub' },
    certificateFor: () => assert.fail('a token needs no certificate'),
    tokenSeconds,
    write,
    enqueue: () => {},
    counts: {
      tokenIssued: (_, why) => counted.push(`issued ${why}`),
      tokenFailed: (_, why) => counted.push(`failed ${why}`),
      certificateIssued: () => assert.fail(),
      certificateFailed: () => assert.fail(),
    },
    clock,
    random: () => 0,
    log: silentLogger,
  })
  const ready = (): ConditionState => TokenInfrastructureReady.ready(tokenReadyMessage('c1', 'c1-a-agent', state.uid))
  const look = (said: ConditionState | 'nothing' = ready()): Promise<Standing> => {
    const conditions = said === 'nothing' ? [] : [{ ...said, lastTransitionTime: '' }]
    const addOn: ManagedClusterAddOn = { metadata: { name: 'a', namespace: 'c1' }, status: { conditions } }
    return keeper.look({ addOn, present: state.secret, signal: new AbortController().signal })
  }
  return { clock, asked, counted, state, keeper, look }
}

test('R2.24 R2.27 R2.44 a token is requested once, kept for 80 % of its life, and then replaced', async (t) => {
  const { clock, asked, counted, state, keeper, look } = await startKeeper(t)
  assert.equal(keeper.expiresAt(), undefined)
  const { condition, lookAgainAt } = await look()
  const expires = clock.now() + lifetime * 1000
  assert.deepEqual(condition, {
    type: 'AddonTokenRefreshed',
    status: 'True',
    reason: 'AddonTokenRefreshed',
    message: `Addon token refreshed, expires at ${state.secret?.data['expiration']}`,
  })
  assert.equal(Date.parse(state.secret!.data['expiration']!), expires)
  assert.deepEqual([keeper.issuedAt?.(), keeper.expiresAt()], [clock.now(), expires])
  const due = lookAgainAt - clock.now()
  assert.ok(due >= 0.8 * lifetime * 1000 && due <= 0.84 * lifetime * 1000)

  clock.advance(due - 1)
  assert.equal((await look()).lookAgainAt, lookAgainAt)
  assert.equal(asked.length, 1)
  clock.advance(1)
  await look()
  assert.equal(asked.length, 2)
  assert.deepEqual((asked[0] as { spec: unknown }).spec, { expirationSeconds: lifetime })
  assert.deepEqual(counted, ['issued SecretMissing', 'issued NearExpiry'])
  await keeper.stop()
})

test('R2.16 R2.44 nothing is asked before the hub is ready; a minute later the condition says what is missing', async (t) => {
  const { clock, asked, look } = await startKeeper(t)
  const first = await look('nothing')
  assert.deepEqual(first, { condition: undefined, lookAgainAt: clock.now() + 60_000 })
  clock.advance(60_000)
  for (const [said, message] of [
    ['nothing', /add-on manager has not said/],
    [TokenInfrastructureReady.failed('etcd is full'), /cannot make the service account: etcd is full/],
    [TokenInfrastructureReady.ready('ServiceAccount c2/c2-a-agent (UID: 1) is ready'), /none of this add-on's/],
  ] as const) {
    const { condition } = await look(said)
    assert.equal(condition?.reason, 'WaitingForTokenInfrastructure')
    assert.match(condition.message, message)
  }
  assert.equal(asked.length, 0)
})

test('R2.28 R2.38 R2.44 whatever a hub answers, the old token stays in use and the condition says why there is no new one', async (t) => {
  const { clock, counted, state, look } = await startKeeper(t)
  await look()
  const before = state.secret
  clock.advance(0.85 * lifetime * 1000)
  const status = (code: number, reason: string): Answer => ({
    status: code,
    body: { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message: 'so it is' },
  })
  const odd = (token: unknown): Answer => ({ status: 201, body: { status: { token } } })
  for (const [answer, reason, message] of [
    [status(401, 'Unauthorized'), 'ClusterCredentialRefused', /cluster's own credential/],
    [status(403, 'Forbidden'), 'NotAllowed', /RoleBinding/],
    [status(500, 'InternalError'), 'HubUnreachable', /does not answer/],
    [odd('eyJsecret'), 'RequestFailed', /without a token that can be read/],
    [{ status: 201, body: {} }, 'RequestFailed', /without a token that can be read/],
  ] as const) {
    state.answer = answer
    const { condition, error } = await look()
    assert.ok(error)
    assert.equal(condition?.reason, 'TokenCreationFailed')
    assert.match(condition.message, message)
    assert.match(condition.message, /the present token lasts until/)
    assert.doesNotMatch(condition.message, /eyJ/)
    assert.equal(counted.at(-1), `failed ${reason}`)
    assert.equal(state.secret, before)
  }
  clock.advance(0.2 * lifetime * 1000)
  assert.doesNotMatch((await look()).condition!.message, /the present token/, 'it has ended')
  state.answer = undefined
  assert.equal((await look()).condition?.status, 'True')
})

test('R2.25 R2.44 a token that could not be written is not asked for again, unless the account is another by then', async (t) => {
  const { asked, state, look } = await startKeeper(t)
  state.writable = false
  await assert.rejects(look(), /disk of etcd is full/)
  await assert.rejects(look(), /disk of etcd is full/)
  assert.equal(asked.length, 1)
  state.uid = 'uid-2'
  await assert.rejects(look(), /disk of etcd is full/)
  assert.equal(asked.length, 2)
  state.writable = true
  await look()
  assert.equal(asked.length, 2)
  assert.equal(state.secret?.data['uid'], 'uid-2')
})

test('R2.27 R2.44 when it is time and the hub names no account, the token is used to its end', async (t) => {
  const { clock, asked, look } = await startKeeper(t)
  await look()
  const end = clock.now() + lifetime * 1000
  clock.advance(0.9 * lifetime * 1000)
  const gone = TokenInfrastructureReady.failed('being made')
  const { condition, lookAgainAt } = await look(gone)
  assert.deepEqual([condition?.status, lookAgainAt], ['True', end])
  clock.advance(0.1 * lifetime * 1000)
  assert.deepEqual(await look(gone), { condition: undefined, lookAgainAt: clock.now() + 60_000 })
  assert.equal(asked.length, 1)
})

test('R2.9 R2.44 a lifetime that no server takes is asked for of none', async (t) => {
  const { asked, counted, look } = await startKeeper(t, { tokenSeconds: 60 })
  assert.match((await look()).condition!.message, /--addon-token-expiration-seconds.*is 60/)
  assert.deepEqual([asked.length, counted], [0, ['failed LifetimeTooShort']])
})
