import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  createAwsCluster,
  isReady,
  messageOf,
  roleReference,
  runIdentities,
  standing,
  stands,
  trusting,
  type IdentityHub,
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

const roleIn = async ({ client, account, controllerArn }: IdentityHub, id: string, name: string): Promise<string> => {
  const roleARN = await account(id).role(`r-${name}`, trusting(controllerArn))
  await client.of(AWSClusterRoleIdentity).create({ metadata: { name }, spec: { allowedNamespaces: {}, roleARN } })
  return roleARN
}

const fleet = (hub: IdentityHub, space: string, count: number, identity: string): Promise<void> =>
  inParallel(
    16,
    Array.from({ length: count }, (_, i) => async () => {
      await createAwsCluster(hub.client, `${space}/${space}-${i}`, { identity: roleReference(identity) })
    }),
  )

const allStand = (hub: IdentityHub, space: string, count: number, wanted: string): Promise<unknown> =>
  eventually(
    async () => {
      const stood = (await hub.client.of(AWSCluster, space).list()).items.map(standing)
      assert.deepEqual([stood.length, ...new Set(stood)], [count, wanted])
    },
    { timeoutMs: 60_000 },
  )

const faults: [title: string, fault: ReturnType<IdentityHub['front']['fault']>][] = [
  ['throttling', { status: 400, code: 'Throttling' }],
  ['an outage', { status: 503, code: 'ServiceUnavailable' }],
  ['cut connections', 'cut'],
]

for (const [i, [title, fault]] of faults.entries())
  test(`R3.45 R3.52 ${title} of one account: no storm from 50 clusters, others untouched, recovery by itself`, async (t) => {
    const hub = await runIdentities(t, plane, local)
    const { client, front } = hub
    const [bad, good] = [`90000000000${i}`, `91000000000${i}`]
    const roleARN = await roleIn(hub, bad, 'bad')
    await roleIn(hub, good, 'good')
    front.fault = ({ parameters }) => (parameters.get('RoleArn') === roleARN ? fault : undefined)
    const space = `bad-${i}`
    await fleet(hub, space, 50, 'bad')
    await allStand(hub, space, 50, 'True/PrincipalUsageAllowed Unknown/CredentialProviderBuildFailed -')
    await createAwsCluster(client, `good-${i}/one`, { identity: roleReference('good') })
    await stands(client, `good-${i}/one`, isReady(good))
    // One recipe, tried with growing pauses: fifty clusters cost no more than one.
    assert.ok(front.count('AssumeRole', roleARN) <= 10, `${front.count('AssumeRole', roleARN)} calls`)
    front.fault = () => undefined
    // Fifty names in one account and region are fifty names.
    await allStand(hub, space, 50, isReady(bad))
  })

test('R3.45 an account that never answers keeps no worker: clusters of another one are served meanwhile', async (t) => {
  const hub = await runIdentities(t, plane, local, { settings: { patienceMs: 300 } })
  const { client, front } = hub
  const roleARN = await roleIn(hub, '920000000001', 'silent')
  await roleIn(hub, '920000000002', 'quick')
  front.fault = ({ parameters }) => (parameters.get('RoleArn') === roleARN ? 'hang' : undefined)
  await fleet(hub, 'silent', 100, 'silent')
  await fleet(hub, 'quick', 20, 'quick')
  await allStand(hub, 'quick', 20, isReady('920000000002'))
  const waits = await stands(client, 'silent/silent-0', /Unknown\/(WaitingForAWS|CredentialProviderBuildFailed)/)
  assert.ok(messageOf(waits, 'PrincipalCredentialRetrieved').length > 0)
  assert.ok(front.count('AssumeRole', roleARN) <= 3)
  front.fault = () => undefined
  await allStand(hub, 'silent', 100, isReady('920000000001'))
})
