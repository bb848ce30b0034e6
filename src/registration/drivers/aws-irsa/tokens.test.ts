import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { awsAccount } from '../../../../testkit/aws-account.ts'
import { startAwsFront } from '../../../../testkit/aws-front.ts'
import { eventually, manualClock, startLocalAws } from '../../../../testkit/index.ts'
import { stubCa, stubHttps } from '../../../../testkit/stub-server.ts'
import { ManagedCluster } from '../../../api/index.ts'
import { awsClient, clusterPair, hubRoleName, hubTrustPolicy, managedPrerequisite } from '../../../aws/index.ts'
import { awsIrsaAgentDriver } from './agent.ts'

const hubClusterArn = 'arn:aws:eks:us-west-2:111111111111:cluster/hub'
const managedClusterArn = 'arn:aws:eks:eu-west-1:222222222222:cluster/m1'
const oidcProvider = 'oidc.example.com/id/1'
const minute = 60_000

const podToken = (n: number): string => {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const sub = 'system:serviceaccount:open-cluster-management-agent:klusterlet-work-sa'
  return `${part({ n })}.${part({ iss: `https://${oidcProvider}`, sub, aud: 'sts.amazonaws.com' })}.c2ln`
}

test('R1.53 over a day every request of an agent carries a token that is good, roles are renewed ahead of time, and a 401 makes it begin anew', async (t) => {
  const local = await startLocalAws()
  t.after(() => local.stop())
  const front = await startAwsFront(t, local.endpoint)
  const root = awsClient({ endpoints: { all: local.endpoint } })
  t.after(() => root.close())
  const pair = clusterPair(hubClusterArn, managedClusterArn)
  const role = managedPrerequisite(pair, { oidcProvider })
  await awsAccount(root, role.account).role(role.name, role.trust, { may: role.access, tags: role.tags })
  await awsAccount(root, pair.hub.account).role(hubRoleName(pair), hubTrustPolicy(pair))
  const folder = mkdtempSync(join(tmpdir(), 'lanyard-token-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'token')
  writeFileSync(file, podToken(0))

  const clock = manualClock(Date.now())
  front.clock = clock
  const seen: { ageMs: number; keyId: string }[] = []
  let refuse = false
  const stub = await stubHttps(t, (request, response) => {
    const url = new URL(
      Buffer.from(request.headers.authorization!.slice('Bearer k8s-aws-v1.'.length), 'base64url').toString(),
    )
    const [, y, mo, d, h, mi, s] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(
      url.searchParams.get('X-Amz-Date')!,
    )!
    const signedAt = Date.UTC(Number(y), Number(mo) - 1, Number(d), Number(h), Number(mi), Number(s))
    seen.push({ ageMs: clock.now() - signedAt, keyId: url.searchParams.get('X-Amz-Credential')!.split('/')[0]! })
    const body = {
      apiVersion: 'cluster.open-cluster-management.io/v1',
      kind: 'ManagedCluster',
      metadata: { name: 'c1' },
      spec: {},
    }
    const answer = refuse ? { kind: 'Status', code: 401, reason: 'Unauthorized' } : body
    response.writeHead(refuse ? 401 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    refuse = false
  })
  const driver = awsIrsaAgentDriver({
    hubClusterArn,
    managedClusterArn,
    clock,
    random: () => 0.5,
    env: {
      AWS_ENDPOINT_URL: front.endpoint,
      AWS_ROLE_ARN: `arn:aws:iam::222222222222:role/${role.name}`,
      AWS_WEB_IDENTITY_TOKEN_FILE: file,
      AWS_REGION: 'eu-west-1',
    },
  })
  const address = { source: 'test', server: stub.server, ca: stubCa, clusterEntry: 'hub' }
  const hub = driver.asCluster(() => ({}), address, { now: () => clock.now() })
  t.after(() => hub.close())

  for (let at = 0; at < 24 * 60; at += 5) {
    if (at % 60 === 0) writeFileSync(file, podToken(at)) // EKS replaces it; the old one is not kept
    await hub.of(ManagedCluster).get('c1')
    clock.advance(5 * minute)
  }
  assert.equal(seen.length, 288)
  assert.ok(
    seen.every(({ ageMs }) => ageMs < 14 * minute),
    `the oldest token was ${Math.max(...seen.map((s) => s.ageMs)) / minute} minutes old`,
  )
  const sessions = new Set(seen.map(({ keyId }) => keyId)).size
  assert.ok(sessions >= 24 && sessions <= 30, `${sessions} sessions in a day`)
  assert.equal(front.count('AssumeRole'), sessions)
  assert.ok(front.count('AssumeRoleWithWebIdentity') <= sessions)

  // A renewal ahead of time may be under way, for which no request waits.
  const before = await eventually(async () => {
    const count = front.calls.length
    for (const _ of [1, 2]) await hub.of(ManagedCluster).get('c1')
    assert.equal(front.calls.length, count)
    return count
  })
  refuse = true
  await hub.of(ManagedCluster).get('c1')
  assert.equal(
    front.calls.length,
    before + 2,
    'both roles are taken on again: the one that the session was of may be gone',
  )
  assert.notEqual(seen.at(-1)!.keyId, seen.at(-2)!.keyId)
})

test('R1.46 R1.47 R1.49 what an agent says of itself, and when a secret is not its own', () => {
  const driver = awsIrsaAgentDriver({ hubClusterArn, managedClusterArn })
  const suffix = hubRoleName(clusterPair(hubClusterArn, managedClusterArn)).slice('ocm-hub-'.length)
  const { metadata } = driver.describe({ metadata: { name: 'c1', annotations: { kept: 'x' } }, spec: {} })
  assert.deepEqual(metadata.annotations, {
    kept: 'x',
    'eks-managed-cluster-arn': managedClusterArn,
    'agent.open-cluster-management.io/managed-cluster-arn': managedClusterArn,
    'agent.open-cluster-management.io/managed-cluster-iam-role-suffix': suffix,
  })
  const at = { identity: { cluster: 'c1', agent: 'a' }, now: 0 }
  const good = `hub us-west-2 arn:aws:iam::111111111111:role/ocm-hub-${suffix}`
  assert.equal(driver.unusable({ kubeconfig: good }, at), undefined)
  assert.equal(driver.unusable({}, at)?.reason, 'KubeconfigMissing')
  assert.equal(driver.unusable({ kubeconfig: good.replace(suffix, '0') }, at)?.reason, 'OtherRole')
  for (const missing of [{ hubClusterArn }, { managedClusterArn }, { hubClusterArn: 'x', managedClusterArn }])
    assert.throws(
      () => awsIrsaAgentDriver(missing),
      /--managed-cluster-arn is missing|--hub-cluster-arn is missing|is not an ARN/,
    )
})
