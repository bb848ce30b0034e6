import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { allowing, awsAccount } from '../../testkit/aws-account.ts'
import { manualClock, startLocalAws, type LocalAws } from '../../testkit/index.ts'
import {
  assumeRole,
  awsClient,
  eksExecPlugin,
  eksTokens,
  execCredential,
  mintEksToken,
  type Credentials,
} from './index.ts'

let local: LocalAws
let session: Credentials
let user: Credentials
before(async () => {
  local = await startLocalAws()
  const aws = awsClient({ endpoints: { all: local.endpoint } })
  user = await awsAccount(aws, '111111111111').user('agent', allowing({ Action: 'sts:AssumeRole', Resource: '*' }))
  const trust = allowing({ Action: 'sts:AssumeRole', Principal: { AWS: 'arn:aws:iam::111111111111:user/agent' } })
  const arn = await awsAccount(aws, '222222222222').role('ocm-hub-x', trust)
  session = await assumeRole(aws, user, { arn, sessionName: 'managed', region: 'us-west-2' })
  aws.close()
})
after(() => local.stop())

const urlIn = (token: string): URL => new URL(Buffer.from(token.replace('k8s-aws-v1.', ''), 'base64url').toString())

/** Does what EKS does: asks STS with the URL in the token, naming the cluster. */
const askSts = async (token: string, clusterName: string): Promise<{ status: number; body: string }> => {
  const url = urlIn(token)
  const http = process.getBuiltinModule('node:http')
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>()
  const headers = { host: url.host, 'x-k8s-aws-id': clusterName }
  http
    .get(new URL(url.pathname + url.search, local.endpoint), { headers }, (answer) => {
      text(answer).then((body) => resolve({ status: answer.statusCode!, body }), reject)
    })
    .on('error', reject)
  return promise
}

test('R1.53 STS takes the URL in a token, says who minted it, and refuses it for another cluster', async () => {
  const { token, expiration } = await mintEksToken({
    clusterName: 'hub-cluster1',
    region: 'us-west-2',
    source: async () => session,
  })
  const answer = await askSts(token, 'hub-cluster1')
  assert.equal(answer.status, 200, answer.body)
  assert.match(answer.body, /assumed-role\/ocm-hub-x\/managed/)
  assert.equal((await askSts(token, 'other')).status, 403)
  assert.ok(expiration > Date.now() + 13 * 60_000 && expiration <= Date.now() + 14 * 60_000)
})

test('a token has the form that aws-iam-authenticator asks for, in each partition', async () => {
  const hosts = {
    'us-west-2': 'sts.us-west-2.amazonaws.com',
    'cn-north-1': 'sts.cn-north-1.amazonaws.com.cn',
    'us-gov-west-1': 'sts.us-gov-west-1.amazonaws.com',
  }
  for (const [region, host] of Object.entries(hosts)) {
    const { token } = await mintEksToken({ clusterName: 'hub', region, source: async () => session })
    assert.match(token, /^k8s-aws-v1\.[\w-]+$/)
    assert.ok(token.length <= 4096)
    const url = urlIn(token)
    assert.equal(url.origin, `https://${host}`)
    assert.equal(url.pathname, '/')
    assert.deepEqual([...url.searchParams.keys()].toSorted(), [
      'Action',
      'Version',
      'X-Amz-Algorithm',
      'X-Amz-Credential',
      'X-Amz-Date',
      'X-Amz-Expires',
      'X-Amz-Security-Token',
      'X-Amz-Signature',
      'X-Amz-SignedHeaders',
    ])
    assert.equal(url.searchParams.get('Action'), 'GetCallerIdentity')
    assert.equal(url.searchParams.get('X-Amz-SignedHeaders'), 'host;x-k8s-aws-id')
    assert.ok(url.searchParams.get('X-Amz-Credential')!.includes(`/${region}/sts/aws4_request`))
  }
})

test('R1.53 tokens are renewed before they expire, by one minting at a time, and never outlive their credentials', async () => {
  const clock = manualClock(Date.now())
  let asked = 0
  let lifetime = 3_600_000
  const source = async (): Promise<Credentials> => {
    asked++
    return { ...session, expiration: clock.now() + lifetime }
  }
  const tokens = eksTokens({ clusterName: 'hub', region: 'us-west-2', source, clock, random: () => 0 })
  const [first] = await Promise.all(Array.from({ length: 50 }, () => tokens()))
  assert.equal(asked, 1)
  for (let minutes = 0; minutes < 60; minutes++) {
    const { expiration } = await tokens()
    assert.ok(expiration - clock.now() >= 60_000, `minute ${minutes}`)
    clock.advance(60_000)
  }
  // Fourteen minutes, renewed in minute 13.
  assert.equal(asked, 5)
  assert.notEqual((await tokens()).token, first!.token)

  lifetime = 300_000
  clock.advance(15 * 60_000)
  assert.equal((await tokens()).expiration, clock.now() + 300_000)
})

test('a cluster name that cannot be sent, and a session token that is too long, are said before they are used', async () => {
  const source = async (): Promise<Credentials> => session
  for (const clusterName of ['', 'a b', 'a\nb'])
    await assert.rejects(mintEksToken({ clusterName, region: 'us-west-2', source }), /is not the name of a cluster/)
  await assert.rejects(mintEksToken({ clusterName: 'hub', region: 'evil.example.com#', source }), /is not a region/)
  const long = { ...session, sessionToken: 'x'.repeat(3500) }
  await assert.rejects(
    mintEksToken({ clusterName: 'hub', region: 'us-west-2', source: async () => long }),
    (error: Error) => /EKS reads 4096/.test(error.message) && !error.message.includes('xxx'),
  )
})

test('an exec plug-in answers in the version that it is asked in, and says which it speaks', () => {
  const token = { token: 'k8s-aws-v1.x', expiration: Date.UTC(2026, 10, 15, 22, 0, 0, 123) }
  const asked = (apiVersion: string) => JSON.stringify({ kind: 'ExecCredential', apiVersion, spec: {} })
  assert.deepEqual(JSON.parse(execCredential(token, asked('client.authentication.k8s.io/v1'))), {
    kind: 'ExecCredential',
    apiVersion: 'client.authentication.k8s.io/v1',
    spec: { interactive: false },
    status: { expirationTimestamp: '2026-11-15T22:00:00Z', token: 'k8s-aws-v1.x' },
  })
  assert.match(execCredential(token), /v1beta1/)
  assert.throws(() => execCredential(token, asked('v2')), /write apiVersion: client.authentication.k8s.io\/v1/)
  assert.throws(() => execCredential(token, '{'), /is not JSON/)
})

test('who runs the exec plug-in gets a token of a role, or of themselves, for the region of the environment', async () => {
  const aws = awsClient({ endpoints: { all: local.endpoint } })
  const env = {
    AWS_ACCESS_KEY_ID: user.accessKeyId,
    AWS_SECRET_ACCESS_KEY: user.secretAccessKey,
    AWS_REGION: 'us-west-2',
  }
  const told = async (roleArn?: string): Promise<string> => {
    const printed = JSON.parse(await eksExecPlugin({ aws, env, clusterName: 'hub', roleArn })) as {
      status: { token: string }
    }
    return (await askSts(printed.status.token, 'hub')).body
  }
  assert.match(await told(), /user\/agent/)
  assert.match(await told('arn:aws:iam::222222222222:role/ocm-hub-x'), /assumed-role\/ocm-hub-x\/lanyard-eks-token/)
  const { AWS_REGION: _region, ...nowhere } = env
  await assert.rejects(eksExecPlugin({ aws, env: nowhere, clusterName: 'hub' }), /add --region, or set AWS_REGION/)
  aws.close()
})

test('minting loads no AWS SDK', async () => {
  const program = `
    const { mintEksToken } = await import('./src/aws/index.ts')
    await mintEksToken({ clusterName: 'h', region: 'us-west-2', source: async () => ({ accessKeyId: 'a', secretAccessKey: 'b' }) })
    console.log('minted')`
  const watch = `import { registerHooks } from 'node:module'
    registerHooks({ resolve: (s, c, n) => { if (s.includes('aws-sdk') || s.includes('smithy')) console.log('loaded ' + s); return n(s, c) } })`
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const args = ['--import', `data:text/javascript,${encodeURIComponent(watch)}`, '--input-type=module', '-e', program]
  execFile(process.execPath, args, (error, stdout) => (error ? reject(error) : resolve(stdout)))
  assert.equal((await promise).trim(), 'minted')
})
