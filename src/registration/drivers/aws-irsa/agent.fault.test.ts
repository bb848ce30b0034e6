import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { eksCluster, startLocalEks, startManagedPlane } from '../../../../testkit/eks/index.ts'
import { allowBootstrap, eventually, sendTo, startAgent, startHub } from '../../../../testkit/index.ts'
import { ManagedCluster } from '../../../api/index.ts'
import { Lease } from '../../../kube/index.ts'
import { findCondition } from '../../../runtime/index.ts'

const limit = { timeoutMs: 240_000 }

test('R1.50 R1.53 R1.57 an agent survives that it is killed, that its pod token expires, and that its hub is made anew', async () => {
  await using eks = await startLocalEks({ access: 'aws-auth', plane: { audit: false } })
  await using plane = await startManagedPlane(eksCluster('m1', '222222222222'))
  const managed = await eks.managed('m1', { account: '222222222222', plane })
  const approval = ['--feature-gates=ManagedClusterAutoApproval=true', `--auto-approved-arn-patterns=${managed.arn}`]
  const hub = await startHub(eks.hub, {
    args: [...eks.hubArgs, ...approval, '--no-webhooks'],
    env: await eks.hubEnvironment(),
  })
  await sendTo(plane, eks.hub)
  const env = await managed.environment()
  const agent = await startAgent(plane, 'c1', { args: managed.args, env })
  await agent.process.ready()
  const admin = eks.hub.client()
  const first = await admin.of(ManagedCluster).get('c1')
  const beats = async (): Promise<string> => (await admin.of(Lease, 'c1').get('managed-cluster-lease')).spec.renewTime!

  await agent.process.kill()
  const last = await beats()
  // What EKS mounted has ended, and nobody has put another there.
  const file = env['AWS_WEB_IDENTITY_TOKEN_FILE']!
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  writeFileSync(file, `${part({})}.${part({ iss: 'https://x', aud: 'sts.amazonaws.com', exp: 1 })}.c2ln`)
  agent.process.spawn()
  await eventually(async () => assert.match(await agent.unready(), /ExpiredToken|expired/i), limit)
  await managed.environment() // writes a new one to the same place
  await agent.process.ready()
  await eventually(async () => assert.notEqual(await beats(), last), limit)
  assert.equal((await admin.of(ManagedCluster).get('c1')).metadata.uid, first.metadata.uid)

  // A hub that comes back at the same address with the same authority and nothing in it.
  await hub.process.kill()
  await Promise.all([eks.hub.controllerManager.kill(), eks.hub.apiServer.kill(), eks.hub.etcd.kill()])
  rmSync(join(eks.hub.folder, 'etcd'), { recursive: true })
  await eks.hub.start()
  await eks.authenticator!.kill() // it remembers what it was told, and does not end by itself
  await eks.authenticator!.start()
  await hub.process.start()
  await allowBootstrap(eks.hub, 'bootstrap')
  await eventually(async () => {
    const again = await admin.of(ManagedCluster).find('c1')
    assert.ok(again && again.metadata.uid !== first.metadata.uid, 'it has to ask to join again')
    assert.equal(findCondition(again, 'ManagedClusterJoined')?.status, 'True', JSON.stringify(again.status))
  }, limit)
  await agent.process.ready()
})
