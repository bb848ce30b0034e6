/** Each of these goes wrong in the field: sections 2.5 and 3 of what is known about it. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  controllerIdentity,
  createAwsCluster,
  createKeys,
  hubNamespace,
  isReady,
  managementAccount,
  messageOf,
  namespace,
  roleReference,
  runIdentities,
  standing,
  stands,
  staticReference,
  trusting,
  type IdentityHub,
} from '../../testkit/identity-hub.ts'
import { eventually, startControlPlane, startLocalAws, type ControlPlane, type LocalAws } from '../../testkit/index.ts'
import {
  AWSCluster,
  AWSClusterControllerIdentity,
  AWSClusterRoleIdentity,
  AWSClusterStaticIdentity,
  crds,
  finalizer,
  installCrds,
} from '../api/index.ts'
import { Event, Namespace, Secret } from '../kube/index.ts'

let plane: ControlPlane
let local: LocalAws
before(async () => {
  ;[plane, local] = await Promise.all([startControlPlane(), startLocalAws()])
  await installCrds(plane.client(), crds({ conversion: 'none' }))
})
after(() => Promise.all([plane.stop(), local.stop()]))

const all = { allowedNamespaces: {} }
const refused = 'False/PrincipalUsageUnauthorized False/PrincipalCredentialRetrievalFailed'
const failing = 'True/PrincipalUsageAllowed False/PrincipalCredentialRetrievalFailed'

/** A role in an account of its own, and the identity of it. */
const roleIn = async (
  { client, account, controllerArn }: IdentityHub,
  id: string,
  name: string,
  spec: Partial<AWSClusterRoleIdentity['spec']> = {},
): Promise<string> => {
  const roleARN = await account(id).role(`r-${name}`, trusting(controllerArn))
  await client.of(AWSClusterRoleIdentity).create({ metadata: { name }, spec: { ...all, roleARN, ...spec } })
  return roleARN
}

const started = async (t: Parameters<typeof runIdentities>[0]): Promise<IdentityHub> => {
  const hub = await runIdentities(t, plane, local)
  await hub.client.of(AWSClusterControllerIdentity).create({ metadata: { name: 'default' }, spec: all })
  return hub
}

const setIdentity = (hub: IdentityHub, key: string, identityRef: object) => {
  const [space, name] = key.split('/') as [string, string]
  return hub.client.of(AWSCluster, space).patch(name, { merge: { spec: { identityRef } } })
}

test('R3.7 R3.8 the identity is switched A to B to A and to the controller: each takes effect, and none leaves the account', async (t) => {
  const hub = await started(t)
  const { client } = hub
  await roleIn(hub, '200000000001', 'a')
  await roleIn(hub, '200000000001', 'b')
  await createAwsCluster(client, 'switch/one', { identity: roleReference('a') })
  const path = async (words: RegExp) =>
    eventually(async () => {
      const cluster = await client.of(AWSCluster, 'switch').get('one')
      assert.match(messageOf(cluster, 'PrincipalCredentialRetrieved'), words)
      assert.equal(standing(cluster), isReady('200000000001'))
      assert.deepEqual(
        cluster.metadata.ownerReferences?.map(({ name }) => name),
        [words.source.at(-1)],
      )
    })
  await path(/Identity a/)
  await setIdentity(hub, 'switch/one', roleReference('b'))
  await path(/Identity b/)
  await setIdentity(hub, 'switch/one', roleReference('a'))
  await path(/Identity a/)
  // In the field the old session is kept, and nobody notices; here the other account is noticed and not entered.
  await setIdentity(hub, 'switch/one', controllerIdentity)
  const stopped = await stands(
    client,
    'switch/one',
    'False/AccountMismatch True/PrincipalCredentialRetrieved 200000000001',
  )
  assert.match(
    messageOf(stopped, 'PrincipalUsageAllowed'),
    new RegExp(`lives in account 200000000001.*reaches account ${managementAccount}`),
  )
  await setIdentity(hub, 'switch/one', roleReference('a'))
  await path(/Identity a/)
})

test('R3.41 prod-a in team and prod in a-team never get the credentials of each other', async (t) => {
  const hub = await started(t)
  await roleIn(hub, '200000000002', 'first')
  await roleIn(hub, '200000000003', 'second')
  await createAwsCluster(hub.client, 'team/prod-a', { identity: roleReference('first') })
  await createAwsCluster(hub.client, 'a-team/prod', { identity: roleReference('second') })
  await stands(hub.client, 'team/prod-a', isReady('200000000002'))
  await stands(hub.client, 'a-team/prod', isReady('200000000003'))
})

test('R3.42 a Secret is rotated: those who use it directly and those under a chain follow; a label on it costs nothing', async (t) => {
  const { client, account, front } = await started(t)
  const owner = account('200000000004')
  const keys = await owner.user('old')
  const trust = {
    Version: '2012-10-17' as const,
    Statement: [
      { Effect: 'Allow' as const, Principal: { AWS: 'arn:aws:iam::200000000004:root' }, Action: 'sts:AssumeRole' },
    ],
  }
  const roleARN = await owner.role('chained', trust)
  const may = {
    Version: '2012-10-17' as const,
    Statement: [{ Effect: 'Allow' as const, Action: 'sts:AssumeRole', Resource: '*' }],
  }
  for (const UserName of ['old'])
    await owner.iam('PutUserPolicy', { UserName, PolicyName: 'may', PolicyDocument: JSON.stringify(may) })
  await createKeys(client, `${hubNamespace}/rotated`, keys)
  await client.of(AWSClusterStaticIdentity).create({
    metadata: { name: 'rotated' },
    spec: { ...all, secretRef: { namespace: hubNamespace, name: 'rotated' } },
  })
  await client.of(AWSClusterRoleIdentity).create({
    metadata: { name: 'over' },
    spec: { ...all, roleARN, sourceIdentityRef: staticReference('rotated') as never },
  })
  await createAwsCluster(client, 'rotate/direct', { identity: staticReference('rotated') })
  await createAwsCluster(client, 'rotate/chained', { identity: roleReference('over') })
  await stands(client, 'rotate/direct', isReady('200000000004'))
  await stands(client, 'rotate/chained', isReady('200000000004'))
  assert.equal(front.count('AssumeRole', roleARN), 1)

  const before = front.calls.length
  await client.of(Secret, hubNamespace).patch('rotated', { merge: { metadata: { labels: { touched: 'yes' } } } })
  const next = await owner.user('new', may)
  await createKeys(client, `${hubNamespace}/rotated`, next)
  await eventually(() => {
    const used = front.calls.slice(before).map(({ action, accessKeyId }) => `${action} ${accessKeyId}`)
    // The label came first: had it counted, the old key would be among these.
    assert.deepEqual(used.toSorted(), [`AssumeRole ${next.accessKeyId}`, `GetCallerIdentity ${next.accessKeyId}`])
  })
  await stands(client, 'rotate/direct', isReady('200000000004'))
})

test('R3.41 two regions, one role: STS is called in the region of each cluster', async (t) => {
  const hub = await started(t)
  const roleARN = await roleIn(hub, '200000000005', 'regions')
  await createAwsCluster(hub.client, 'regions/west', { identity: roleReference('regions'), region: 'eu-west-1' })
  await createAwsCluster(hub.client, 'regions/east', { identity: roleReference('regions'), region: 'us-east-1' })
  await stands(hub.client, 'regions/west', isReady('200000000005'))
  await stands(hub.client, 'regions/east', isReady('200000000005'))
  assert.equal(hub.front.count('AssumeRole', roleARN), 2)
  const regions = hub.hub.credentials
    .inspect()
    .flatMap(({ recipe }) => (recipe.kind === 'role' ? [recipe.role.region] : []))
  assert.deepEqual(regions.toSorted(), ['eu-west-1', 'us-east-1'])
})

test('R3.45 labels, annotations and other clusters of the same identity cost no call', async (t) => {
  const hub = await started(t)
  const { client } = hub
  const roleARN = await roleIn(hub, '200000000006', 'churn')
  await createAwsCluster(client, 'churn/one', { identity: roleReference('churn') })
  await stands(client, 'churn/one', isReady('200000000006'))
  for (const i of [1, 2, 3])
    await client.of(AWSClusterRoleIdentity).patch('churn', {
      merge: { metadata: { labels: { a: `${i}`, b: `${i}`, c: `${i}` }, annotations: { x: `${i}`, y: `${i}` } } },
    })
  await createAwsCluster(client, 'churn/two', { identity: roleReference('churn') })
  await stands(client, 'churn/two', isReady('200000000006'))
  // Recreated under its name, it begins anew and still shares the session of the identity, not one of its own.
  await client.of(AWSCluster, 'churn').delete('one')
  await eventually(async () => (await client.of(AWSCluster, 'churn').find('one')) === undefined)
  await createAwsCluster(client, 'churn/one', { identity: roleReference('churn') })
  await stands(client, 'churn/one', isReady('200000000006'))
  assert.equal(hub.front.count('AssumeRole', roleARN), 1)
})

test('R3.35 a loop that got past admission is told in a condition, and its way out works', async (t) => {
  const hub = await started(t)
  const { client } = hub
  await roleIn(hub, '200000000007', 'head', { sourceIdentityRef: roleReference('tail') as never })
  await roleIn(hub, '200000000007', 'tail', { sourceIdentityRef: roleReference('head') as never })
  await createAwsCluster(client, 'loop/one', { identity: roleReference('head') })
  const looped = await stands(client, 'loop/one', 'Unknown/IdentityLoop False/PrincipalCredentialRetrievalFailed -')
  assert.match(messageOf(looped, 'PrincipalUsageAllowed'), /head ← .*tail ← .*head/)
  assert.equal(hub.front.count('AssumeRole'), 0)
  await client.of(AWSClusterRoleIdentity).patch('head', { merge: { spec: { sourceIdentityRef: controllerIdentity } } })
  await stands(client, 'loop/one', isReady('200000000007'))
})

test('R3.17 R3.18 R3.52 a namespace is revoked and allowed again, by list, by selector and by its own labels, at every link', async (t) => {
  const hub = await started(t)
  const { client, front } = hub
  await namespace(client, 'moody', { tier: 'gold' })
  const roleARN = await roleIn(hub, '200000000008', 'moody')
  await createAwsCluster(client, 'moody/one', { identity: roleReference('moody') })
  await stands(client, 'moody/one', isReady('200000000008'))
  const allow = (allowedNamespaces: object | null) =>
    client
      .of(AWSClusterRoleIdentity)
      .patch('moody', { json: [{ op: 'add', path: '/spec/allowedNamespaces', value: allowedNamespaces }] })

  await allow({ list: ['other'] })
  const told = await stands(client, 'moody/one', `${refused} 200000000008`)
  assert.deepEqual(
    told.metadata.ownerReferences,
    undefined,
    'an identity that may not be used does not own the cluster',
  )
  await allow({ list: ['moody'] })
  await stands(client, 'moody/one', isReady('200000000008'))
  await allow({ selector: { matchLabels: { tier: 'gold' } } })
  // Somebody else stays a user all the time: the identity itself does not change with this namespace.
  await namespace(client, 'steady', { tier: 'gold' })
  await createAwsCluster(client, 'steady/other', { identity: roleReference('moody') })
  await stands(client, 'steady/other', isReady('200000000008'))
  await stands(client, 'moody/one', isReady('200000000008'))
  await client.of(Namespace).patch('moody', { merge: { metadata: { labels: { tier: 'lead' } } } })
  await stands(client, 'moody/one', `${refused} 200000000008`)
  await client.of(Namespace).patch('moody', { merge: { metadata: { labels: { tier: 'gold' } } } })
  await stands(client, 'moody/one', isReady('200000000008'))
  // Its source closes: the identity itself still allows it.
  await client
    .of(AWSClusterControllerIdentity)
    .patch('default', { merge: { metadata: { annotations: { 'identities.lanyard.io/delete-in-use': 'true' } } } })
  await client.of(AWSClusterControllerIdentity).delete('default')
  await stands(client, 'moody/one', 'Unknown/IdentityNotFound False/PrincipalCredentialRetrievalFailed 200000000008')
  await client
    .of(AWSClusterControllerIdentity)
    .create({ metadata: { name: 'default' }, spec: { allowedNamespaces: { list: ['other'] } } })
  await stands(
    client,
    'moody/one',
    'False/SourcePrincipalUsageUnauthorized False/PrincipalCredentialRetrievalFailed 200000000008',
  )
  assert.equal(front.count('AssumeRole', roleARN), 1, 'permission is no business of AWS')
})

test('R3.23 R3.22 the controller identity that somebody deleted stays deleted, also after a restart', async (t) => {
  const first = await runIdentities(t, plane, local)
  const { client } = first
  await createAwsCluster(client, 'closed/one')
  await stands(client, 'closed/one', isReady(managementAccount))
  await client
    .of(AWSClusterControllerIdentity)
    .patch('default', { merge: { metadata: { annotations: { 'identities.lanyard.io/delete-in-use': 'true' } } } })
  await client.of(AWSClusterControllerIdentity).delete('default')
  await stands(client, 'closed/one', /^Unknown\/IdentityNotFound/)
  await createAwsCluster(client, 'closed/two')
  await stands(client, 'closed/two', /^Unknown\/IdentityNotFound/)
  await first.stop()
  await runIdentities(t, plane, local, { before: first })
  await createAwsCluster(client, 'closed/three')
  await stands(client, 'closed/three', /^Unknown\/IdentityNotFound/)
  assert.equal(await client.of(AWSClusterControllerIdentity).find('default'), undefined)
  // Nobody was taken along: the cluster that it owned is still there.
  assert.equal((await client.of(AWSCluster, 'closed').get('one')).metadata.ownerReferences, undefined)
})

test('R3.23 with the gate off nothing is created', async (t) => {
  const { client } = await runIdentities(t, plane, local, { settings: { autoControllerIdentityCreator: false } })
  await createAwsCluster(client, 'gated/one')
  const cluster = await stands(client, 'gated/one', /^Unknown\/IdentityNotFound/)
  assert.match(
    messageOf(cluster, 'PrincipalUsageAllowed'),
    /AWSClusterControllerIdentity default does not exist; create it/,
  )
  assert.equal(await client.of(AWSClusterControllerIdentity).find('default'), undefined)
})

test('R3.51 an identity in use is held without a webhook too, tells by whom, and takes no cluster with it when it goes', async (t) => {
  const hub = await started(t)
  const { client } = hub
  await roleIn(hub, '200000000009', 'held')
  await createAwsCluster(client, 'held/one', { identity: roleReference('held') })
  // A namespace that may not use it cannot keep it alive either.
  await client
    .of(AWSClusterRoleIdentity)
    .patch('held', { json: [{ op: 'add', path: '/spec/allowedNamespaces', value: { list: ['held'] } }] })
  await createAwsCluster(client, 'squatter/one', { identity: roleReference('held') })
  await stands(client, 'squatter/one', /^False/)
  await stands(client, 'held/one', isReady('200000000009'))
  await eventually(async () => (await client.of(AWSCluster, 'held').get('one')).metadata.ownerReferences?.length === 1)

  await client.of(AWSClusterRoleIdentity).delete('held')
  await eventually(async () => {
    const { items } = await client.of(Event, 'default').list()
    const note = items.find(({ reason, regarding }) => reason === 'IdentityInUse' && regarding.name === 'held')?.note
    assert.match(note ?? '', /is used by held\/one and goes when/)
  })
  assert.equal(
    standing(await client.of(AWSCluster, 'held').get('one')),
    isReady('200000000009'),
    'it keeps what it has',
  )
  await createAwsCluster(client, 'held/late', { identity: roleReference('held') })
  await stands(client, 'held/late', /^Unknown\/IdentityDeleting/)

  await client
    .of(AWSClusterRoleIdentity)
    .patch('held', { merge: { metadata: { annotations: { 'identities.lanyard.io/delete-in-use': 'true' } } } })
  await eventually(async () => (await client.of(AWSClusterRoleIdentity).find('held')) === undefined)
  const left = await stands(
    client,
    'held/one',
    'Unknown/IdentityNotFound False/PrincipalCredentialRetrievalFailed 200000000009',
  )
  assert.equal(left.metadata.ownerReferences, undefined)
  assert.equal(left.metadata.deletionTimestamp, undefined)
})

test('R3.51 a cluster whose identity is gone says so, and there is a way out of its deletion', async (t) => {
  const hub = await started(t)
  const { client } = hub
  await createAwsCluster(client, 'stuck/one', { identity: roleReference('gone'), finalizers: [finalizer.awsCluster] })
  await stands(client, 'stuck/one', /^Unknown\/IdentityNotFound/)
  await client.of(AWSCluster, 'stuck').delete('one')
  await eventually(async () => {
    const cluster = await client.of(AWSCluster, 'stuck').get('one')
    assert.match(
      messageOf(cluster, 'PrincipalCredentialRetrieved'),
      /annotate awscluster one identities.lanyard.io\/abandon-aws-resources=true/,
    )
  })
  await client
    .of(AWSCluster, 'stuck')
    .patch('one', { merge: { metadata: { annotations: { 'identities.lanyard.io/abandon-aws-resources': 'true' } } } })
  await eventually(async () => (await client.of(AWSCluster, 'stuck').find('one')) === undefined)
})

test('R3.52 conditions recover when IAM is mended, without a restart and without anybody touching the cluster', async (t) => {
  const hub = await started(t)
  const { client, account, controllerArn } = hub
  const owner = account('200000000010')
  const roleARN = await owner.role('late', trusting('arn:aws:iam::200000000010:user/nobody'))
  await client.of(AWSClusterRoleIdentity).create({ metadata: { name: 'late' }, spec: { ...all, roleARN } })
  await createAwsCluster(client, 'late/one', { identity: roleReference('late') })
  const denied = await stands(client, 'late/one', `${failing} -`)
  assert.equal(
    denied.status?.conditions?.find(({ type }) => type === 'PrincipalCredentialRetrieved')?.severity,
    'Error',
  )
  await owner.iam('UpdateAssumeRolePolicy', {
    RoleName: 'late',
    PolicyDocument: JSON.stringify(trusting(controllerArn)),
  })
  const ready = await stands(client, 'late/one', isReady('200000000010'))
  const observed = ready.status!.conditions!.map(({ observedGeneration }) => observedGeneration)
  assert.ok(
    observed.every((one) => one === ready.metadata.generation),
    String(observed),
  )
})

test('R3.54 two clusters of one name in one account and region: the second is refused with both names, until the first is gone', async (t) => {
  const hub = await started(t)
  const { client } = hub
  await roleIn(hub, '200000000011', 'same')
  await roleIn(hub, '200000000011', 'other-role')
  // Squatting on the name by writing the account by hand gives nothing.
  await createAwsCluster(client, 'zero/prod', { identity: roleReference('nobody'), accountID: '200000000011' })
  await createAwsCluster(client, 'one/prod', { identity: roleReference('same') })
  await stands(client, 'one/prod', isReady('200000000011'))
  await createAwsCluster(client, 'two/prod', { identity: roleReference('other-role') })
  const second = await stands(client, 'two/prod', 'False/ClusterNameTaken True/PrincipalCredentialRetrieved -')
  assert.match(
    messageOf(second, 'PrincipalUsageAllowed'),
    /AWSClusters one\/prod and two\/prod have the same name in account 200000000011 and region eu-west-1/,
  )
  await createAwsCluster(client, 'three/prod', { identity: roleReference('other-role'), region: 'eu-central-1' })
  await stands(client, 'three/prod', isReady('200000000011'))
  await client.of(AWSCluster, 'one').delete('prod')
  await stands(client, 'two/prod', isReady('200000000011'))
})

test('R3.54 twenty clusters of one name come in the same moment: one gets the place', async (t) => {
  const hub = await started(t)
  const { client } = hub
  await roleIn(hub, '200000000012', 'rush')
  const names = Array.from({ length: 20 }, (_, i) => `rush-${i}/prod`)
  await Promise.all(names.map((name) => createAwsCluster(client, name, { identity: roleReference('rush') })))
  await eventually(async () => {
    const clusters = (await client.of(AWSCluster).list()).items.map(standing)
    assert.equal(clusters.filter((one) => one === isReady('200000000012')).length, 1)
    assert.equal(clusters.filter((one) => one.startsWith('False/ClusterNameTaken')).length, 19)
  })
})

test('R3.11 a paused cluster is left alone', async (t) => {
  const hub = await started(t)
  const { client } = hub
  await namespace(client, 'paused')
  await client.of(AWSCluster, 'paused').create({
    metadata: { namespace: 'paused', name: 'one', annotations: { 'cluster.x-k8s.io/paused': 'true' } },
    spec: { region: 'eu-west-1' },
  })
  await createAwsCluster(client, 'paused/two')
  await stands(client, 'paused/two', isReady(managementAccount))
  assert.equal((await client.of(AWSCluster, 'paused').get('one')).status, undefined)
})
