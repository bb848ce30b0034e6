import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { allowing, awsAccount, type AwsAccount } from '../../testkit/aws-account.ts'
import { startAwsFront, type AwsFront } from '../../testkit/aws-front.ts'
import { startLocalAws, type LocalAws } from '../../testkit/index.ts'
import {
  awsClient,
  AwsError,
  CredentialCache,
  failedFor,
  fromKeys,
  fromRole,
  fromWebIdentity,
  getCallerIdentity,
  type AssumeRole,
  type AwsClient,
  type Credentials,
  type ObjectReference,
  type Recipe,
  type TokenWanted,
} from './index.ts'

const region = 'eu-west-1'
const provider = 'oidc.example.com/id/1'
let local: LocalAws
let direct: AwsClient
let management: AwsAccount
let workload: AwsAccount
let customer: AwsAccount
let keys: Credentials
const keysArn = 'arn:aws:iam::111111111111:user/controller'

before(async () => {
  local = await startLocalAws()
  direct = awsClient({ endpoints: { all: local.endpoint } })
  management = awsAccount(direct, '111111111111')
  workload = awsAccount(direct, '222222222222')
  customer = awsAccount(direct, '333333333333')
  keys = await management.user('controller', mayAssume)
})
after(async () => {
  direct.close()
  await local.stop()
})

const mayAssume = allowing({ Action: ['sts:AssumeRole', 'sts:TagSession'], Resource: '*' })
const trusting = (AWS: string, Condition?: Record<string, Record<string, string>>) =>
  allowing({
    Action: ['sts:AssumeRole', 'sts:TagSession'],
    Principal: { AWS },
    ...(Condition ? { Condition } : {}),
  })

interface Bench {
  front: AwsFront
  aws: AwsClient
  cache: CredentialCache
  secrets: Map<string, Credentials>
  tokens: { wanted: TokenWanted[]; give: (wanted: TokenWanted) => Promise<string> }
}

/** A cache in front of the local AWS, with Secrets and tokens that the test holds. */
const bench = async (
  t: TestContext,
  more: Partial<ConstructorParameters<typeof CredentialCache>[0]> = {},
): Promise<Bench> => {
  const front = await startAwsFront(t, local.endpoint)
  const aws = awsClient({ endpoints: { all: front.endpoint } })
  const secrets = new Map<string, Credentials>()
  const tokens: Bench['tokens'] = { wanted: [], give: async () => jwt('system:serviceaccount:test:app') }
  const cache = new CredentialCache({
    aws,
    controller: fromKeys(keys),
    secret: async ({ namespace, name }: ObjectReference) => {
      const found = secrets.get(`${namespace}/${name}`)
      if (!found) throw new Error(`secret ${namespace}/${name} does not exist`)
      return found
    },
    token: async (wanted) => {
      tokens.wanted.push(wanted)
      return tokens.give(wanted)
    },
    ...more,
  })
  t.after(() => {
    cache.close()
    aws.close()
  })
  return { front, aws, cache, secrets, tokens }
}

const jwt = (sub: string, aud = 'sts.amazonaws.com'): string => {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'RS256' })}.${part({ iss: `https://${provider}`, sub, aud })}.c2ln`
}

const controller: Recipe = { kind: 'controller' }
const assuming = (arn: string, source: Recipe = controller, more: Partial<AssumeRole> = {}): Recipe => ({
  kind: 'role',
  source,
  role: { arn, sessionName: 'lanyard', region, ...more },
})

const failure = async (of: Promise<unknown>): Promise<AwsError> => {
  const error = await of.then(
    () => assert.fail('it should have failed'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof AwsError, String(error))
  return error
}

test('R3.28 R3.48 a role of another account is assumed, and a chain of them, each from the one before', async (t) => {
  const { aws, cache, front } = await bench(t)
  const jump = await management.role('jump', trusting(keysArn), { may: mayAssume })
  const owner = await workload.role('owner', trusting(jump), { may: mayAssume })
  const admin = await customer.role('admin', trusting(owner))
  const chain = assuming(admin, assuming(owner, assuming(jump)))

  const caller = await getCallerIdentity(aws, await cache.get(chain), region)

  assert.equal(caller.account, '333333333333')
  assert.equal(caller.arn, 'arn:aws:sts::333333333333:assumed-role/admin/lanyard')
  assert.equal(front.count('AssumeRole'), 3)
  await cache.get(assuming(owner, assuming(jump)))
  assert.equal(front.count('AssumeRole'), 3, 'the beginnings of chains are shared')
  const shown = cache.inspect().map(({ arn, accountId }) => `${accountId} ${arn?.split('/')[1]}`)
  assert.deepEqual(shown.toSorted(), [
    '111111111111 jump',
    '222222222222 owner',
    '333333333333 admin',
    'undefined undefined',
  ])
  await assert.rejects(cache.get(assuming(admin)), /is not authorized/, 'not without the chain')
})

test('R3.30 R3.31 R3.32 R3.33 everything in a recipe reaches STS', async (t) => {
  const { cache, front } = await bench(t)
  const arn = await workload.role('everything', trusting(keysArn))
  const policyArn = await workload.policy('narrow', allowing({ Action: 'ec2:*', Resource: '*' }))
  const inlinePolicy = JSON.stringify(allowing({ Action: 'ec2:Describe*', Resource: '*' }))

  await cache.get(
    assuming(arn, controller, {
      sessionName: 'cluster-spinner.acme.com',
      durationSeconds: 1800,
      externalId: '7a5b816a-7743-4377-a382-2d695bf1f172',
      inlinePolicy,
      policyArns: [policyArn],
      tags: { company: 'acme industries', product: 'cluster-spinner+ü' },
      transitiveTagKeys: ['company', 'product'],
    }),
  )

  const { Version: _version, ...sent } = Object.fromEntries(front.calls[0]!.parameters)
  assert.deepEqual(sent, {
    Action: 'AssumeRole',
    RoleArn: arn,
    RoleSessionName: 'cluster-spinner.acme.com',
    DurationSeconds: '1800',
    Policy: inlinePolicy,
    'PolicyArns.member.1.arn': policyArn,
    ExternalId: '7a5b816a-7743-4377-a382-2d695bf1f172',
    'Tags.member.1.Key': 'company',
    'Tags.member.1.Value': 'acme industries',
    'Tags.member.2.Key': 'product',
    'Tags.member.2.Value': 'cluster-spinner+ü',
    'TransitiveTagKeys.member.1': 'company',
    'TransitiveTagKeys.member.2': 'product',
  })
})

test('R3.30 a session lasts as long as it is asked to', async (t) => {
  const { cache } = await bench(t)
  const arn = await workload.role('lasting', trusting(keysArn))
  const { expiration } = await cache.get(assuming(arn, controller, { durationSeconds: 7200 }))
  assert.ok(Math.abs(expiration! - Date.now() - 7_200_000) < 60_000)
  assert.equal(cache.inspect().find(({ recipe }) => recipe.kind === 'role')?.limit, undefined)
})

test('R3.31 AWS denies a wrong or missing external id, and the error says where to look and not what it is', async (t) => {
  const { cache } = await bench(t)
  const arn = await customer.role('with-id', trusting(keysArn, { StringEquals: { 'sts:ExternalId': 'right' } }))
  const ask = (externalId: string | undefined) => cache.get(assuming(arn, controller, { externalId }))

  assert.equal((await ask('right')).accountId, '333333333333')
  const wrong = await failure(ask('wrong-one'))
  assert.equal(wrong.reason, 'AccessDenied')
  assert.equal(wrong.link, `role ${arn}`)
  assert.match(wrong.message, /the same external id/)
  assert.doesNotMatch(wrong.message, /wrong-one/)
  const missing = await failure(ask(undefined))
  assert.match(missing.message, /asks for no external id/)
})

test('R3.32 an inline policy and managed policies narrow what a session may do', async (t) => {
  const { aws, cache } = await bench(t)
  const may = allowing({ Action: ['iam:GetRole', 'iam:ListRoles'], Resource: '*' })
  const arn = await workload.role('wide', trusting(keysArn), { may })
  const onlyGet = allowing({ Action: 'iam:GetRole', Resource: '*' })
  const policyArn = await workload.policy('only-get', onlyGet)
  const list = async (more: Partial<AssumeRole>): Promise<string> => {
    const credentials = await cache.get(assuming(arn, controller, more))
    const call = { service: 'iam', region, credentials, version: '2010-05-08' } as const
    await aws.query({ ...call, action: 'GetRole', parameters: { RoleName: 'wide' } })
    return aws.query({ ...call, action: 'ListRoles' }).then(
      () => 'may',
      (error: unknown) => (failedFor(error, 'AccessDenied') ? 'may not' : String(error)),
    )
  }
  assert.equal(await list({}), 'may')
  assert.equal(await list({ inlinePolicy: JSON.stringify(onlyGet) }), 'may not')
  assert.equal(await list({ policyArns: [policyArn] }), 'may not')
})

test('R3.33 session tags are seen by the trust policy of the next role', async (t) => {
  const { cache } = await bench(t)
  const first = await management.role('tagged', trusting(keysArn), { may: mayAssume })
  const next = await workload.role(
    'for-acme',
    trusting(first, { StringEquals: { 'aws:PrincipalTag/company': 'acme' } }),
  )
  const ask = (company: string) => cache.get(assuming(next, assuming(first, controller, { tags: { company } })))
  assert.equal((await ask('acme')).accountId, '222222222222')
  assert.equal((await failure(ask('evil'))).link, `role ${next}`)
})

test('R3.38 R3.48 a service account takes on a role by its token, and others do not', async (t) => {
  const { cache, front, tokens } = await bench(t)
  const trust = allowing({
    Action: 'sts:AssumeRoleWithWebIdentity',
    Principal: { Federated: `arn:aws:iam::222222222222:oidc-provider/${provider}` },
    Condition: {
      StringEquals: { [`${provider}:sub`]: 'system:serviceaccount:test:app', [`${provider}:aud`]: 'sts.amazonaws.com' },
    },
  })
  const arn = await workload.role('for-app', trust)
  const recipe = (name: string): Recipe => ({
    kind: 'serviceAccount',
    account: { namespace: 'test', name },
    audiences: ['sts.amazonaws.com'],
    expirationSeconds: 86_400,
    role: { arn, sessionName: 'lanyard', region, durationSeconds: 3600 },
  })

  assert.equal((await cache.get(recipe('app'))).accountId, '222222222222')
  assert.deepEqual(tokens.wanted, [
    { account: { namespace: 'test', name: 'app' }, audiences: ['sts.amazonaws.com'], expirationSeconds: 86_400 },
  ])
  const [call] = front.calls
  assert.equal(call!.accessKeyId, '', 'a web identity is not signed')
  assert.equal(call!.parameters.get('DurationSeconds'), '3600')

  tokens.give = async () => jwt('system:serviceaccount:evil:app')
  const denied = await failure(cache.get(recipe('other')))
  assert.equal(denied.reason, 'AccessDenied')
  assert.match(denied.message, /system:serviceaccount:test:other with audience sts.amazonaws.com/)
  assert.doesNotMatch(JSON.stringify([denied.message, denied.stack]), /eyJ/)
})

test('sources work one by one, without a cache', async (t) => {
  const { aws } = await bench(t)
  const arn = await workload.role('alone', trusting(keysArn), { may: mayAssume })
  const next = await customer.role('alone', trusting(arn))
  const role = (arn: string): AssumeRole => ({ arn, sessionName: 'lanyard', region })
  const source = fromRole(aws, role(next), fromRole(aws, role(arn), fromKeys(keys)))
  assert.equal((await source()).accountId, '333333333333')
  const web = fromWebIdentity(aws, role(arn), async () => jwt('system:serviceaccount:test:app'))
  assert.equal((await failure(web())).reason, 'AccessDenied')
  await assert.rejects(fromKeys({ accessKeyId: 'a', secretAccessKey: ' ' })(), /no secretAccessKey/)
})

test('who one is costs a call for keys, once for all who ask, and none for roles', async (t) => {
  const { cache, front } = await bench(t)
  const arn = await workload.role('who', trusting(keysArn))
  const asked = await Promise.all(Array.from({ length: 50 }, () => cache.caller(controller, region)))
  assert.deepEqual(new Set(asked.map((caller) => caller.arn)), new Set([keysArn]))
  assert.equal(front.count('GetCallerIdentity'), 1)
  assert.deepEqual((await cache.caller(assuming(arn), region)).account, '222222222222')
  assert.equal(front.count('GetCallerIdentity'), 1)
  assert.equal(cache.inspect().find(({ recipe }) => recipe.kind === 'controller')?.accountId, '111111111111')
})

test('R3.42 a rotated Secret takes effect at once, directly and under a chain, and what the old key made is not used', async (t) => {
  const { aws, cache, secrets, front } = await bench(t)
  const old = await management.user('old', mayAssume)
  const renewed = await management.user('renewed', mayAssume)
  const trust = allowing({ Action: 'sts:AssumeRole', Principal: { AWS: 'arn:aws:iam::111111111111:root' } })
  const arn = await workload.role('below', trust)
  const secret = { namespace: 'capa-system', name: 'keys' }
  const leaf: Recipe = { kind: 'static', secret }
  secrets.set('capa-system/keys', old)
  const before = await cache.get(assuming(arn, leaf))
  assert.equal((await getCallerIdentity(aws, await cache.get(leaf), region)).arn, 'arn:aws:iam::111111111111:user/old')
  assert.equal((await cache.caller(leaf, region)).arn, 'arn:aws:iam::111111111111:user/old')

  secrets.set('capa-system/keys', renewed)
  assert.equal((await cache.get(leaf)).accessKeyId, renewed.accessKeyId, 'a key itself is read at each use')
  assert.equal(cache.forget({ secret }), 2)

  const after = await cache.get(assuming(arn, leaf))
  assert.notEqual(after.accessKeyId, before.accessKeyId)
  assert.equal(front.calls.findLast(({ action }) => action === 'AssumeRole')?.accessKeyId, renewed.accessKeyId)
  assert.equal((await cache.caller(leaf, region)).arn, 'arn:aws:iam::111111111111:user/renewed')
})

test('R3.26 a Secret that is missing, or lacks a part, is named; a new one is tried at once', async (t) => {
  const { cache, secrets } = await bench(t)
  const arn = await workload.role('waiting', trusting(keysArn))
  const leaf: Recipe = { kind: 'static', secret: { namespace: 'ns', name: 'keys' } }
  const missing = await failure(cache.get(assuming(arn, leaf)))
  assert.equal(missing.reason, 'SourceFailed')
  assert.equal(missing.link, 'the access key in secret ns/keys')
  assert.match(missing.message, /secret ns\/keys does not exist/)
  secrets.set('ns/keys', { accessKeyId: keys.accessKeyId, secretAccessKey: '' })
  assert.match(
    (await failure(cache.get(assuming(arn, leaf)))).message,
    /ns\/keys: the access key has no secretAccessKey/,
  )
  secrets.set('ns/keys', keys)
  assert.equal((await cache.get(assuming(arn, leaf))).accountId, '222222222222')
})

test('a chain says which of its links failed, and keys that AWS does not know are not the fault of the role', async (t) => {
  const { cache, secrets, front } = await bench(t)
  const middle = await management.role('middle', trusting(keysArn)) // it may not assume anything
  const last = await workload.role('last', trusting('arn:aws:iam::999999999999:role/other'))
  const denied = await failure(cache.get(assuming(last, assuming(middle))))
  assert.equal(denied.link, `role ${last}`)
  assert.match(denied.message, /lets arn:aws:sts::111111111111:assumed-role\/middle\/lanyard do sts:AssumeRole/)
  assert.equal(denied.policy.kind, 'wait')

  secrets.set('ns/unknown', { accessKeyId: 'AKIAUNKNOWNUNKNOWN00', secretAccessKey: 'x' })
  const unknown = await failure(
    cache.get(assuming(middle, { kind: 'static', secret: { namespace: 'ns', name: 'unknown' } })),
  )
  assert.equal(unknown.reason, 'InvalidCredentials')
  assert.match(unknown.message, /the credentials of the access key in secret ns\/unknown/)
  const calls = front.calls.length
  await failure(cache.get(assuming(last, assuming(middle))))
  assert.equal(front.calls.length, calls, 'a failure is remembered')
})

test('a cache whose own credentials come from another cache still says which link failed', async (t) => {
  const { aws, cache } = await bench(t)
  const missing = 'arn:aws:iam::222222222222:role/missing'
  const arn = await workload.role('on-top', trusting(keysArn))
  const unasked = (): never => assert.fail('nobody asks for it here')
  const upper = new CredentialCache({
    aws,
    controller: cache.source(assuming(missing)),
    secret: unasked,
    token: unasked,
  })
  t.after(() => upper.close())
  assert.equal((await failure(upper.get(assuming(arn)))).link, `role ${missing}`)
})

test('a malformed policy is not sent twice', async (t) => {
  const { cache, front } = await bench(t)
  const arn = await workload.role('policed', trusting(keysArn))
  const ask = () => cache.get(assuming(arn, controller, { inlinePolicy: '{"Version":' }))
  const error = await failure(ask())
  assert.equal(error.reason, 'MalformedPolicy')
  assert.equal(error.policy.kind, 'stall')
  assert.match(error.message, /correct the inline policy/)
  assert.deepEqual((await failure(ask())).policy, { kind: 'stall' })
  assert.equal(front.count('AssumeRole', arn), 1)
})

test('R3.44 a session that was revoked is replaced within the call that finds out', async (t) => {
  const { cache, front } = await bench(t)
  const jump = await management.role('revocable', trusting(keysArn), { may: mayAssume })
  const last = await workload.role('behind', trusting(jump))
  const session = await cache.get(assuming(jump))
  front.fault = (call) => (call.accessKeyId === session.accessKeyId ? { status: 403, code: 'ExpiredToken' } : undefined)
  assert.equal((await cache.get(assuming(last, assuming(jump)))).accountId, '222222222222')
  assert.equal(front.count('AssumeRole', jump), 2)
})
