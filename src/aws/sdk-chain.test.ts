import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { allowing, awsAccount } from '../../testkit/aws-account.ts'
import { startLocalAws, type LocalAws } from '../../testkit/index.ts'
import { awsClient, type Credentials } from './index.ts'

// The AWS SDK reads the environment of its process, so it gets one of its own.
let local: LocalAws
let user: Credentials
const home = mkdtempSync(join(tmpdir(), 'lanyard-home-'))
before(async () => {
  local = await startLocalAws()
  const aws = awsClient({ endpoints: { all: local.endpoint } })
  const trust = allowing({ Action: 'sts:AssumeRole', Principal: { AWS: 'arn:aws:iam::111111111111:user/ada' } })
  user = await awsAccount(aws, '111111111111').user('ada', allowing({ Action: 'sts:AssumeRole', Resource: '*' }))
  await awsAccount(aws, '222222222222').role('admin', trust)
  aws.close()
  mkdirSync(join(home, '.aws'))
  writeFileSync(
    join(home, '.aws', 'credentials'),
    `[base]\naws_access_key_id = ${user.accessKeyId}\naws_secret_access_key = ${user.secretAccessKey}\n`,
  )
  writeFileSync(
    join(home, '.aws', 'config'),
    '[profile work]\nrole_arn = arn:aws:iam::222222222222:role/admin\nsource_profile = base\nregion = eu-west-1\n',
  )
})
after(async () => {
  rmSync(home, { recursive: true })
  await local.stop()
})

/** Who a program is that finds its credentials in this environment; what it prints on failure otherwise. */
const whoIs = async (env: Record<string, string>): Promise<string> => {
  const program = `
    const { awsClient, endpointsFrom, fromDefaultChain, getCallerIdentity } = await import('lanyard/aws')
    const aws = awsClient({ endpoints: endpointsFrom(process.env) })
    const credentials = await fromDefaultChain({ env: process.env, aws })()
    console.log((await getCallerIdentity(aws, credentials, 'eu-west-1')).arn)
    aws.close()`
  const { promise, resolve } = Promise.withResolvers<string>()
  const clean = {
    HOME: home,
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_ENDPOINT_URL: local.endpoint,
    NO_PROXY: '127.0.0.1',
    ...env,
  }
  execFile(process.execPath, ['--input-type=module', '-e', program], { env: clean }, (error, stdout, stderr) =>
    resolve(error ? stderr : stdout.trim()),
  )
  return promise
}

test('profiles, and roles that profiles assume, are found as the AWS SDK finds them; the room is usable as lanyard/aws', async () => {
  assert.equal(await whoIs({ AWS_PROFILE: 'base' }), 'arn:aws:iam::111111111111:user/ada')
  assert.match(await whoIs({ AWS_PROFILE: 'work' }), /^arn:aws:sts::222222222222:assumed-role\/admin\//)
})

test('without any credentials the error says how to get some', async () => {
  assert.match(await whoIs({}), /there are no AWS credentials: .*set AWS_PROFILE or AWS_ACCESS_KEY_ID/)
})
