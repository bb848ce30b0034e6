import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  createAwsCluster,
  hubNamespace,
  isReady,
  namespace,
  roleReference,
  runIdentities,
  standing,
  trusting,
} from '../../testkit/identity-hub.ts'
import { eventually, startControlPlane, startLocalAws, type ControlPlane, type LocalAws } from '../../testkit/index.ts'
import { AWSCluster, AWSClusterRoleIdentity, crds, installCrds } from '../api/index.ts'
import { inParallel } from '../runtime/index.ts'

let plane: ControlPlane
let local: LocalAws
before(async () => {
  ;[plane, local] = await Promise.all([startControlPlane({ controllerManager: false }), startLocalAws()])
  await installCrds(plane.client(), crds({ conversion: 'none' }))
})
after(() => Promise.all([plane.stop(), local.stop()]))

test('R3.45 R3.46 200 AWSClusters in 20 accounts, all reconciled at the same time at start: one STS call for each recipe', async (t) => {
  const admin = plane.client()
  const first = await runIdentities(t, plane, local)
  await first.stop()
  const accounts = Array.from({ length: 20 }, (_, i) => String(300_000_000_000 + i))
  for (const id of accounts) {
    const roleARN = await first.account(id).role('capa', trusting(first.controllerArn))
    await admin
      .of(AWSClusterRoleIdentity)
      .create({ metadata: { name: `a${id}` }, spec: { allowedNamespaces: {}, roleARN } })
  }
  await namespace(admin, hubNamespace)
  const wanted = Array.from({ length: 200 }, (_, i) => ({ key: `team-${i % 10}/c${i}`, account: accounts[i % 20]! }))
  await inParallel(
    16,
    wanted.map(
      ({ key, account }) =>
        async () =>
          void (await createAwsCluster(admin, key, { identity: roleReference(`a${account}`) })),
    ),
  )

  const { front, hub } = await runIdentities(t, plane, local, { userAgent: 'scale-hub' })
  await eventually(
    async () => {
      const { items } = await admin.of(AWSCluster).list()
      const ready = items.filter((cluster) => standing(cluster) === isReady(cluster.spec?.accountID ?? ''))
      assert.equal(ready.length, 200)
    },
    { timeoutMs: 120_000 },
  )
  const { items } = await admin.of(AWSCluster).list()
  const of = new Map(wanted.map(({ key, account }) => [key, account]))
  for (const { metadata, spec } of items)
    assert.equal(spec?.accountID, of.get(`${metadata.namespace}/${metadata.name}`))
  const roles = hub.credentials.inspect().filter(({ recipe }) => recipe.kind === 'role')
  assert.equal(roles.length, 20)
  assert.equal(front.count('AssumeRole'), 20, 'STS calls equal the number of distinct recipes')
  assert.equal(front.calls.filter(({ action }) => action !== 'AssumeRole').length, 0)
})
