import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { allowing, awsAccount } from '../../testkit/aws-account.ts'
import { startLocalAws, type LocalAws } from '../../testkit/index.ts'
import { stubHttp } from '../../testkit/stub-server.ts'
import { awsClient, endpointOf, endpointsFrom, fromDefaultChain, type AwsClient } from './index.ts'

let local: LocalAws
let aws: AwsClient
const folder = mkdtempSync(join(tmpdir(), 'lanyard-chain-'))
before(async () => {
  local = await startLocalAws()
  aws = awsClient({ endpoints: { sts: local.endpoint, iam: local.endpoint } })
})
after(async () => {
  rmSync(folder, { recursive: true })
  aws.close()
  await local.stop()
})

const otherwise = async () => ({ accessKeyId: 'from-the-sdk', secretAccessKey: 'x' })
const chain = (env: Record<string, string>) => fromDefaultChain({ env, aws, otherwise })
const keysInEnv = { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 's', AWS_SESSION_TOKEN: 't' }

test('keys in the environment come first, unless a profile is chosen', async () => {
  assert.deepEqual(await chain(keysInEnv)(), { accessKeyId: 'AKIA', secretAccessKey: 's', sessionToken: 't' })
  assert.equal((await chain({ ...keysInEnv, AWS_PROFILE: 'work' })()).accessKeyId, 'from-the-sdk')
  assert.equal((await chain({})()).accessKeyId, 'from-the-sdk')
})

test('R3.48 the token that EKS mounts gives the role that EKS names, and is read again each time', async () => {
  const provider = 'oidc.example.com/id/2'
  const trust = allowing({
    Action: 'sts:AssumeRoleWithWebIdentity',
    Principal: { Federated: `arn:aws:iam::222222222222:oidc-provider/${provider}` },
    Condition: { StringEquals: { [`${provider}:sub`]: 'system:serviceaccount:ns:controller' } },
  })
  const arn = await awsAccount(aws, '222222222222').role('irsa', trust)
  const file = join(folder, 'token')
  const mount = (sub: string): void => {
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    writeFileSync(file, `${part({})}.${part({ iss: `https://${provider}`, sub })}.c2ln\n`)
  }
  const env = { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: arn, AWS_REGION: 'eu-west-1' }
  mount('system:serviceaccount:ns:other')
  const source = chain(env)
  await assert.rejects(source(), /Not authorized/)
  mount('system:serviceaccount:ns:controller')
  assert.equal((await source()).arn, 'arn:aws:sts::222222222222:assumed-role/irsa/lanyard')
  const { AWS_REGION: _region, ...elsewhere } = env
  await assert.rejects(chain(elsewhere)(), /set AWS_REGION/)
})

test('EKS Pod Identity gives credentials to who shows its token; it is told to nobody far away', async (t) => {
  const file = join(folder, 'pod-token')
  writeFileSync(file, 'pod-token-1\n')
  const agent = await stubHttp(t, (request, response) => {
    const known = request.headers.authorization === 'pod-token-1'
    const given = {
      AccessKeyId: 'ASIA',
      SecretAccessKey: 's',
      Token: 't',
      Expiration: '2026-11-15T22:00:00Z',
      AccountId: '1',
    }
    response.writeHead(known ? 200 : 401).end(known ? JSON.stringify(given) : 'pod-token-2 is unknown')
  })
  const env = (uri: string) => ({
    AWS_CONTAINER_CREDENTIALS_FULL_URI: uri,
    AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file,
  })
  const source = chain(env(`${agent.server}/v1/credentials`))
  assert.deepEqual(await source(), {
    accessKeyId: 'ASIA',
    secretAccessKey: 's',
    sessionToken: 't',
    expiration: Date.UTC(2026, 10, 15, 22),
    accountId: '1',
  })
  writeFileSync(file, 'pod-token-2')
  await assert.rejects(
    source(),
    (error: Error) => /Pod Identity/.test(error.message) && !/pod-token/.test(error.message),
  )
  await assert.rejects(chain(env('http://192.0.2.1/'))(), /neither near by nor HTTPS/)
})

test('each service is called at the endpoint of its region, or where one is told to', () => {
  const at = (...args: Parameters<typeof endpointOf>) => {
    const { url, region } = endpointOf(...args)
    return `${url.origin} ${region}`
  }
  assert.equal(at('sts', 'eu-west-1'), 'https://sts.eu-west-1.amazonaws.com eu-west-1')
  assert.equal(at('sts', 'cn-northwest-1'), 'https://sts.cn-northwest-1.amazonaws.com.cn cn-northwest-1')
  assert.equal(at('eks', 'us-gov-east-1'), 'https://eks.us-gov-east-1.amazonaws.com us-gov-east-1')
  assert.equal(at('iam', 'eu-west-1'), 'https://iam.amazonaws.com us-east-1')
  assert.equal(at('iam', 'cn-northwest-1'), 'https://iam.cn-north-1.amazonaws.com.cn cn-north-1')
  assert.equal(at('iam', 'us-gov-east-1'), 'https://iam.us-gov.amazonaws.com us-gov-west-1')
  const env = { AWS_ENDPOINT_URL: 'http://127.0.0.1:1', AWS_ENDPOINT_URL_STS: 'http://127.0.0.1:2' }
  assert.equal(at('sts', 'eu-west-1', endpointsFrom(env)), 'http://127.0.0.1:2 eu-west-1')
  assert.equal(at('eks', 'eu-west-1', endpointsFrom(env)), 'http://127.0.0.1:1 eu-west-1')
  const ignored = endpointsFrom({ ...env, AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: 'true' })
  assert.equal(at('sts', 'eu-west-1', ignored), 'https://sts.eu-west-1.amazonaws.com eu-west-1')
  assert.throws(() => endpointOf('sts', 'eu-west-1.evil.example'), /is not a region/)
  assert.throws(() => endpointOf('sts', 'eu-west-1', { sts: 'localhost:4566' }), /is not a URL/)
  assert.throws(
    () => endpointOf('sts', 'eu-west-1', { sts: 'http://joe:secret@127.0.0.1' }),
    (error: Error) => !error.message.includes('secret'),
  )
})
