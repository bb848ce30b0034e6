import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { after, before, test, type TestContext } from 'node:test'
import { allowing, awsAccount } from '../../testkit/aws-account.ts'
import { startAwsFront, type AwsFront, type Fault } from '../../testkit/aws-front.ts'
import { manualClock, seededRandom, startLocalAws, type LocalAws, type ManualClock } from '../../testkit/index.ts'
import {
  awsClient,
  AwsError,
  CredentialCache,
  durationLimit,
  getCallerIdentity,
  type AssumeRole,
  type AwsClient,
  type CacheLimits,
  type Credentials,
  type Recipe,
} from './index.ts'

const minute = 60_000
const region = 'eu-west-1'
const anyone = allowing({ Action: 'sts:AssumeRole', Principal: { AWS: '*' } })
const mayAssume = allowing({ Action: 'sts:AssumeRole', Resource: '*' })
let local: LocalAws
let keys: Credentials

/** Four roles in four accounts, each of which may assume the next; and one role in each of two more accounts. */
const roles = ['111111111111', '222222222222', '333333333333', '444444444444'].map(
  (id) => `arn:aws:iam::${id}:role/link`,
)
const roleA = 'arn:aws:iam::555555555555:role/a'
const roleB = 'arn:aws:iam::666666666666:role/b'

before(async () => {
  local = await startLocalAws()
  const aws = awsClient({ endpoints: { all: local.endpoint } })
  keys = await awsAccount(aws, '999999999999').user('controller', mayAssume)
  const create = (arn: string) =>
    awsAccount(aws, arn.split(':')[4]!).role(arn.split('/')[1]!, anyone, { may: mayAssume })
  await Promise.all([...roles, roleA, roleB].map(create))
  aws.close()
})
after(() => local.stop())

const controller: Recipe = { kind: 'controller' }
const assuming = (arn: string, source: Recipe = controller, more: Partial<AssumeRole> = {}): Recipe => ({
  kind: 'role',
  source,
  role: { arn, sessionName: 'lanyard', region, ...more },
})
const chainOf = (arns: string[], more: Partial<AssumeRole> = {}): Recipe =>
  arns.reduce<Recipe>((source, arn) => assuming(arn, source, more), controller)

interface Simulation {
  clock: ManualClock
  front: AwsFront
  cache: CredentialCache
  aws: AwsClient
  /** Lets time pass; what is begun meanwhile ends before it goes on. */
  pass: (ms: number) => Promise<void>
}

/** The cache in a time of its own. The local AWS behind it is real; the front moves its sessions into that time. */
const simulation = async (
  t: TestContext,
  more: { random?: () => number; limits?: Partial<CacheLimits>; timeoutMs?: number; live?: boolean } = {},
): Promise<Simulation> => {
  const { random = () => 0, limits, timeoutMs } = more
  const front = await startAwsFront(t, local.endpoint)
  const clock = manualClock(Date.now())
  front.clock = clock
  const aws = awsClient({ endpoints: { all: front.endpoint }, timeoutMs }) // signs in real time, which the local AWS checks
  const unasked = (): never => assert.fail('nobody asks for it here')
  const cache = new CredentialCache({
    aws,
    clock,
    random,
    limits,
    controller: async () => keys,
    secret: unasked,
    token: unasked,
  })
  t.after(() => {
    cache.close()
    aws.close()
  })
  const settled = async (): Promise<void> => {
    while (cache.inspect().some(({ underWay }) => underWay)) await turn()
  }
  const pass = async (ms: number): Promise<void> => {
    await settled()
    clock.advance(ms)
    await settled()
  }
  return { clock, front, cache, aws, pass }
}

const seeded = (t: TestContext): (() => number) => {
  const random = seededRandom(t)
  return () => random.next()
}

const reasonOf = (error: unknown): string => (error instanceof AwsError ? error.reason : String(error))

test('R3.43 R3.45 R3.47 a chain of four roles lives for a week: no call fails, and STS is called as seldom as can be', async (t) => {
  const { front, cache, aws, pass } = await simulation(t)
  const chain = chainOf(roles)
  for (let at = 0; at <= 7 * 24 * 60; at++) {
    const credentials = await cache.get(chain)
    if (at % 15 === 0) assert.equal((await getCallerIdentity(aws, credentials, region)).account, '444444444444')
    await pass(minute)
  }
  // An hour's session is renewed in minute 54: 186 times after the first. The session that it is assumed from is needed then only;
  // one of an hour serves minutes 0 and 54, so every second renewal needs a new one, and that a new one before it, and so on.
  assert.equal(front.count('AssumeRole', roles[3]), 187)
  for (const arn of roles.slice(0, 3)) assert.equal(front.count('AssumeRole', arn), 94)
  assert.equal(front.count('AssumeRole'), 187 + 3 * 94)
  assert.deepEqual(
    cache.inspect().flatMap(({ lastError }) => lastError ?? []),
    [],
  )
})

test('R3.45 renewals are spread over a twentieth of the lifetime, and all come before the last tenth is over', async (t) => {
  const { front, cache, pass } = await simulation(t, { random: seeded(t) })
  const recipes = Array.from({ length: 40 }, (_, i) => assuming(roleA, controller, { sessionName: `cluster-${i}` }))
  const at: number[] = []
  for (let minutes = 0; minutes < 60; minutes++) {
    const calls = front.count('AssumeRole')
    await Promise.all(recipes.map((recipe) => cache.get(recipe)))
    await pass(minute)
    const renewed = front.count('AssumeRole') - calls
    if (minutes > 0) at.push(...Array.from({ length: renewed }, () => minutes))
  }
  assert.equal(at.length, 40)
  assert.ok(Math.min(...at) >= 51 && Math.max(...at) <= 54, String(at))
  assert.ok(new Set(at).size > 1, 'not all at once')
})

test('R3.44 two hundred callers at once cost one call, and one who leaves takes nobody along', async (t) => {
  const { front, cache } = await simulation(t)
  const leaving = new AbortController()
  const left = cache.get(assuming(roleA), leaving.signal)
  const others = Array.from({ length: 200 }, () => cache.get(assuming(roleA)))
  leaving.abort(new Error('changed my mind'))
  await assert.rejects(left, /changed my mind/)
  const given = await Promise.all(others)
  assert.equal(new Set(given.map(({ accessKeyId }) => accessKeyId)).size, 1)
  assert.equal(front.count('AssumeRole'), 1)
})

test('R3.41 another recipe takes effect with the next call, and going back costs none', async (t) => {
  const { front, cache } = await simulation(t)
  const accounts: (string | undefined)[] = []
  for (const recipe of [assuming(roleA), assuming(roleB), assuming(roleA), controller, assuming(roleB)])
    accounts.push((await cache.get(recipe)).accountId)
  assert.deepEqual(accounts, ['555555555555', '666666666666', '555555555555', undefined, '666666666666'])
  assert.equal(front.count('AssumeRole'), 2)
})

test('R3.42 who waits for credentials while their input changes gets the new ones', async (t) => {
  const { front, cache } = await simulation(t)
  const held = Promise.withResolvers<void>()
  const old: string[] = []
  front.fault = (call) => {
    if (old.length > 0) return undefined
    old.push(call.action)
    held.resolve()
    return { status: 403, code: 'AccessDenied' }
  }
  const waiting = cache.get(assuming(roleA))
  await held.promise
  assert.equal(
    cache.forget((link) => link.kind === 'controller'),
    2,
  )
  assert.equal((await waiting).accountId, '555555555555')
  assert.equal(front.count('AssumeRole'), 2)
})

test('a session assumed from a session is asked for an hour at most, and that is said', async (t) => {
  const { front, cache } = await simulation(t)
  const chain = chainOf(roles.slice(0, 2), { durationSeconds: 43_200 })
  await cache.get(chain)
  const asked = front.calls.map(({ parameters }) => parameters.get('DurationSeconds'))
  assert.deepEqual(asked, ['43200', '3600'])
  const limits = cache.inspect().map(({ limit }) => limit)
  assert.equal(limits.filter((limit) => limit?.includes('3600 s and not the 43200 s')).length, 1)
  assert.match(durationLimit(chain)!, /a role that is assumed from a role/)
  assert.equal(durationLimit(assuming(roleA, controller, { durationSeconds: 43_200 })), undefined)
})

test('R3.45 a role that is denied is asked for less and less often, and at once when something changed', async (t) => {
  const { front, cache, pass } = await simulation(t)
  const missing = assuming('arn:aws:iam::555555555555:role/missing')
  for (let seconds = 0; seconds < 3600; seconds += 5) {
    await assert.rejects(cache.get(missing), (error) => reasonOf(error) === 'AccessDenied')
    await pass(5000)
  }
  // 5, 10, 20 … 300 s, half of that at least: the reconcile loop asked 720 times.
  assert.ok(front.count('AssumeRole') <= 32, String(front.count('AssumeRole')))
  const calls = front.count('AssumeRole')
  await assert.rejects(cache.get(missing), (error) => error instanceof AwsError && error.policy.kind === 'wait')
  assert.equal(front.count('AssumeRole'), calls)
  cache.forget((link) => link.kind === 'role' && link.role.arn.endsWith('/missing'))
  await assert.rejects(cache.get(missing))
  assert.equal(front.count('AssumeRole'), calls + 1)
})

test('a new access key that AWS does not know yet is tried again soon', async (t) => {
  const { clock, front, cache, pass } = await simulation(t)
  const began = clock.now()
  let refusals = 3
  front.fault = () => (refusals-- > 0 ? { status: 403, code: 'InvalidClientTokenId' } : undefined)
  while (!(await cache.get(assuming(roleA)).catch(() => undefined))) await pass(500)
  assert.ok(clock.now() - began <= 10_000, 'four tries within ten seconds')
  assert.equal(front.count('AssumeRole'), 4)
})

const inAccount =
  (id: string, fault: ReturnType<Fault>): Fault =>
  ({ parameters }) =>
    parameters.get('RoleArn')?.includes(`:${id}:`) ? fault : undefined

test('R3.45 throttling causes no storm, is over by itself, and leaves other accounts alone', async (t) => {
  const { front, cache, pass } = await simulation(t, { random: seeded(t) })
  const many = Array.from({ length: 200 }, (_, i) => assuming(roleA, controller, { sessionName: `cluster-${i}` }))
  front.fault = inAccount('555555555555', { status: 400, code: 'Throttling' })
  for (let seconds = 0; seconds < 600; seconds += 10) {
    const results = await Promise.allSettled(many.map((recipe) => cache.get(recipe)))
    assert.ok(results.every((result) => result.status === 'rejected' && reasonOf(result.reason) === 'Throttled'))
    assert.equal((await cache.get(assuming(roleB))).accountId, '666666666666')
    await pass(10_000)
  }
  // Ten that were under way together, then one that looks after 1, 2, 4 … 60 s: 12,000 lookups.
  const during = front.count('AssumeRole', roleA)
  assert.ok(during <= 40, `${during} calls`)
  assert.equal(front.count('AssumeRole', roleB), 1)

  front.fault = () => undefined
  await pass(2 * minute)
  await Promise.all(many.map((recipe) => cache.get(recipe)))
  assert.equal(front.count('AssumeRole', roleA) - during, 200)
})

test('Retry-After is obeyed', async (t) => {
  const { front, cache, pass } = await simulation(t)
  front.fault = () => ({ status: 503, code: 'ServiceUnavailable', headers: { 'retry-after': '45' } })
  await assert.rejects(cache.get(assuming(roleA)))
  front.fault = () => undefined
  await pass(40_000)
  await assert.rejects(cache.get(assuming(roleA)), (error) => reasonOf(error) === 'Unavailable')
  await pass(6000)
  await cache.get(assuming(roleA))
  assert.equal(front.count('AssumeRole'), 2)
})

test('an outage of five minutes before the renewal is due is noticed by nobody; a longer one is, and ends by itself', async (t) => {
  const { front, cache, pass } = await simulation(t, { random: seeded(t) })
  const recipe = assuming(roleA)
  await cache.get(recipe)
  await pass(54 * minute)
  front.fault = () => 'cut'
  for (let seconds = 0; seconds < 300; seconds += 10) {
    await cache.get(recipe)
    await pass(10_000)
  }
  const during = front.count('AssumeRole') - 1
  assert.ok(during > 1 && during <= 16, `${during} calls`)
  assert.equal(cache.inspect().find(({ recipe: { kind } }) => kind === 'role')?.lastError?.reason, 'Unreachable')

  await pass(minute)
  await assert.rejects(cache.get(recipe), (error) => reasonOf(error) === 'Unreachable')
  front.fault = () => undefined
  await pass(2 * minute)
  await cache.get(recipe)
  assert.equal(cache.inspect().find(({ recipe: { kind } }) => kind === 'role')?.lastError, undefined)
})

test('an account that does not answer keeps nobody else waiting, and not for ever', async (t) => {
  const { front, cache } = await simulation(t, { timeoutMs: 2000 })
  front.fault = inAccount('555555555555', 'hang')
  const slow = Array.from({ length: 50 }, (_, i) =>
    cache.get(assuming(roleA, controller, { sessionName: `cluster-${i}` })).then(() => 'ok', reasonOf),
  )
  const first = await Promise.race([Promise.race(slow), cache.get(assuming(roleB)).then(({ accountId }) => accountId)])
  assert.equal(first, '666666666666')
  assert.deepEqual(new Set(await Promise.all(slow)), new Set(['TimedOut']))
  assert.equal(front.count('AssumeRole', roleA), 10, 'the others heard it from the first ten')
})

test('what nobody uses goes, what others stand on stays, and there is a limit', async (t) => {
  const { cache, front, pass } = await simulation(t, { limits: { recipes: 100, unusedMs: 30 * minute } })
  const chain = chainOf(roles.slice(0, 2))
  await cache.get(assuming(roleA))
  for (let minutes = 0; minutes < 120; minutes += 10) {
    await cache.get(chain)
    await pass(10 * minute)
  }
  assert.deepEqual(
    cache
      .inspect()
      .map(({ recipe }) => (recipe.kind === 'role' ? recipe.role.arn : recipe.kind))
      .toSorted(),
    [...roles.slice(0, 2), 'controller'],
  )
  const calls = front.count('AssumeRole')
  const names = Array.from({ length: 300 }, (_, i) => `cluster-${i}`)
  const given = await Promise.all(names.map((sessionName) => cache.get(assuming(roleA, controller, { sessionName }))))
  assert.equal(new Set(given.map(({ accessKeyId }) => accessKeyId)).size, 300)
  assert.equal(front.count('AssumeRole') - calls, 300, 'those that had to go were not asked for again')
  assert.equal(cache.size, 100)
})

test('what people are shown holds no secret', async (t) => {
  const { cache } = await simulation(t)
  const { secretAccessKey, sessionToken } = await cache.get(chainOf(roles))
  const shown = JSON.stringify(cache.inspect())
  for (const secret of [secretAccessKey, sessionToken!, keys.secretAccessKey]) assert.ok(!shown.includes(secret))
  assert.ok(shown.includes('assumed-role/link/lanyard'))
})
