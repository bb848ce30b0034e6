import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { allowing } from '../../../../testkit/aws-account.ts'
import { startAwsFront } from '../../../../testkit/aws-front.ts'
import { startLocalEks, type LocalEks } from '../../../../testkit/eks/index.ts'
import { eventually } from '../../../../testkit/index.ts'
import { createIrsaCluster, grantsOf, leftInAws, mapRolesOf, runIrsaHub } from '../../../../testkit/irsa-hub.ts'
import { clusterOf, setAccepts } from '../../../../testkit/registration-hub.ts'
import { annotation, ManagedCluster } from '../../../api/index.ts'
import { clusterPair, hubRoleName, listAt, pathOf, textAt } from '../../../aws/index.ts'
import { ConfigMap, type Client } from '../../../kube/index.ts'
import { findCondition } from '../../../runtime/index.ts'
import { Accepted } from '../../contract.ts'

let eks: LocalEks
let admin: Client
before(async () => {
  eks = await startLocalEks({
    access: 'access-entries',
    plane: { audit: false, controllerManager: true },
    creator: { tags: true },
  })
  admin = eks.hub.client()
})
after(() => eks.stop())

const limit = { timeoutMs: 90_000 }
const arnOf = (name: string, account = '222222222222'): string => `arn:aws:eks:us-west-2:${account}:cluster/${name}`
const roleOf = (arn: string): string => hubRoleName(clusterPair(eks.hubArn, arn))

/** Waits until acceptance has this to say of a cluster. */
const says = (name: string, status: 'True' | 'False', message: RegExp): Promise<void> =>
  eventually(async () => {
    const condition = findCondition((await clusterOf(admin, name))!, Accepted.type)
    assert.equal(condition?.status, status, condition?.message ?? 'no condition')
    assert.match(condition?.message ?? '', message)
  }, limit)

interface Entry {
  accessEntryArn: string
  username: string
  kubernetesGroups: string[]
}

const entryOf = async (role: string): Promise<Entry> => {
  const { accessEntry } = await eks.client.json<{ accessEntry: Entry }>({
    service: 'eks',
    operation: 'DescribeAccessEntry',
    method: 'GET',
    path: `/clusters/hub/access-entries/${encodeURIComponent(`arn:aws:iam::111111111111:role/${role}`)}`,
    region: eks.hubCluster.region,
    credentials: eks.hubAccount.root,
  })
  return accessEntry
}

test('R1.38 a cluster that stamps the ARN of another gains nothing, takes nothing from it when it goes, and is told so', async (t) => {
  await runIrsaHub(t, eks)
  await createIrsaCluster(admin, 'victim', arnOf('v'))
  await says('victim', 'True', /Accepted/)
  const before = await leftInAws(eks)
  const recorded = await grantsOf(admin)
  const entry = await entryOf(roleOf(arnOf('v')))
  assert.deepEqual(
    [entry.username, entry.kubernetesGroups],
    ['open-cluster-management:victim', ['open-cluster-management:victim']],
  )

  await createIrsaCluster(admin, 'thief', arnOf('v'))
  await says(
    'thief',
    'False',
    /cluster thief says that it is .*cluster\/v, which was accepted as cluster victim; .*join with its own ARN/,
  )
  await admin.of(ManagedCluster).delete('thief')
  await eventually(async () => assert.equal(await clusterOf(admin, 'thief'), undefined), limit)

  assert.deepEqual(await leftInAws(eks), before)
  assert.deepEqual(await grantsOf(admin), recorded)
  assert.deepEqual(await entryOf(roleOf(arnOf('v'))), entry)
  await admin.of(ManagedCluster).delete('victim')
  await eventually(async () => assert.deepEqual(await leftInAws(eks), []), limit)
})

test('R1.38 R1.56 an ARN that is changed after acceptance gives nothing; what was granted stays, and goes when the cluster is denied', async (t) => {
  await runIrsaHub(t, eks)
  await createIrsaCluster(admin, 'fickle', arnOf('f'))
  await says('fickle', 'True', /Accepted/)
  const granted = await leftInAws(eks)
  const annotate = (arn: string | null) =>
    admin
      .of(ManagedCluster)
      .patch('fickle', { merge: { metadata: { annotations: { [annotation.eksManagedClusterArn]: arn } } } })

  await annotate(arnOf('other', '333333333333'))
  await says(
    'fickle',
    'False',
    /was accepted as .*cluster\/f, and its annotation now says .*cluster\/other: that gives it nothing/,
  )
  await annotate(null)
  await says('fickle', 'False', /has no annotation eks-managed-cluster-arn/)
  assert.deepEqual(await leftInAws(eks), granted)
  assert.equal((await grantsOf(admin)).length, 1)

  await annotate(arnOf('f'))
  await says('fickle', 'True', /Accepted/)
  await annotate(arnOf('other', '333333333333'))
  await setAccepts(admin, 'fickle', false)
  await eventually(async () => assert.deepEqual([await leftInAws(eks), await grantsOf(admin)], [[], []]), limit)
  // A person has looked: what it says now counts.
  await setAccepts(admin, 'fickle', true)
  await says('fickle', 'True', /Accepted/)
  assert.ok((await leftInAws(eks)).includes(roleOf(arnOf('other', '333333333333'))))
  await admin.of(ManagedCluster).delete('fickle')
  await eventually(async () => assert.deepEqual(await leftInAws(eks), []), limit)
})

test('R1.38 an ARN that is malformed, of another partition or for another hub leads to no call of AWS and to a condition that says what to do', async (t) => {
  const front = await startAwsFront(t, eks.endpoint)
  await runIrsaHub(t, eks, { endpoint: front.endpoint })
  const cases: [arn: string, more: Record<string, string>, message: RegExp][] = [
    [
      'arn:aws:eks:us-west-2:22222222222:cluster/a',
      {},
      /"22222222222" is not twelve digits; let the cluster join again/,
    ],
    ['../../ocm-hub-', {}, /is not an ARN: it does not begin with "arn:"/],
    ['arn:aws:eks:us-west-2:222222222222:cluster/a#b', {}, /does not name a cluster/],
    ['', {}, /is not an ARN/],
    ['arn:aws:iam::222222222222:role/admin', {}, /is not the ARN of an EKS cluster: its service is iam/],
    ['arn:aws-cn:eks:cn-north-1:222222222222:cluster/a', {}, /is in partition aws-cn and this hub in aws/],
    [arnOf('a'), { [annotation.managedClusterArn]: arnOf('b') }, /two ARNs that differ/],
    [
      arnOf('a'),
      { [annotation.managedClusterIamRoleSuffix]: '' },
      /joined for another hub.*join again with --eks-hub-cluster-arn/,
    ],
  ]
  await Promise.all(cases.map(([arn, more], i) => createIrsaCluster(admin, `odd${i}`, arn, { more })))
  for (const [i, [, , message]] of cases.entries()) await says(`odd${i}`, 'False', message)
  for (const i of cases.keys()) await admin.of(ManagedCluster).delete(`odd${i}`)
  await eventually(async () => assert.deepEqual((await admin.of(ManagedCluster).list()).items, []), limit)
  assert.deepEqual(front.calls, [])
})

test('R1.39 without a person only ARNs that a pattern matches are accepted, and one is enough', async (t) => {
  await runIrsaHub(t, eks, { autoApprovedArnPatterns: ['arn:aws:eks:us-west-2:222222222222:cluster/(good|fine)-.*'] })
  await createIrsaCluster(admin, 'good', arnOf('good-1'), { accepts: false })
  await createIrsaCluster(admin, 'bad', arnOf('bad'), { accepts: false })
  await createIrsaCluster(admin, 'elsewhere', arnOf('good-1', '333333333333'), { accepts: false })
  await says('good', 'True', /Accepted/)
  for (const name of ['bad', 'elsewhere']) {
    const cluster = await clusterOf(admin, name)
    assert.deepEqual([cluster?.spec.hubAcceptsClient, cluster?.status?.conditions ?? []], [false, []])
  }
  await admin.of(ManagedCluster).deleteAll()
  await eventually(async () => assert.deepEqual(await leftInAws(eks), []), limit)
})

test('R1.39 without a pattern every cluster waits for a person, and * is every ARN', async (t) => {
  const gates = { managedClusterAutoApproval: true }
  const none = await runIrsaHub(t, eks, { gates })
  await createIrsaCluster(admin, 'asks', arnOf('asks'), { accepts: false })
  // One that a person lets in shows that the queue has been worked through.
  await createIrsaCluster(admin, 'let-in', arnOf('let-in'))
  await says('let-in', 'True', /Accepted/)
  assert.equal((await clusterOf(admin, 'asks'))?.spec.hubAcceptsClient, false)
  await none.stop()
  await runIrsaHub(t, eks, { gates, autoApprovedArnPatterns: ['*'] })
  await says('asks', 'True', /Accepted/)
  await admin.of(ManagedCluster).deleteAll()
  await eventually(async () => assert.deepEqual(await leftInAws(eks), []), limit)
})

test('R1.33 R1.34 a flag forces aws-auth; its drift, and drift of role, policy and trust, is found and repaired', async (t) => {
  const hub = await runIrsaHub(t, eks, { awsAccess: 'aws-auth', awsResourceTags: [] })
  await createIrsaCluster(admin, 'd1', arnOf('d'))
  await says('d1', 'True', /Accepted/)
  const map = await mapRolesOf(admin)
  assert.match(map, /username: system:open-cluster-management:d1\n  groups:\n    - system:open-cluster-management:d1\n/)
  const write = (mapRoles: string) =>
    admin.of(ConfigMap, 'kube-system').patch('aws-auth', { merge: { data: { mapRoles } } })
  await write(map.replace('    - system:open-cluster-management:d1', '    - system:masters'))
  await eventually(async () => assert.equal(await mapRolesOf(admin), map), limit)
  await admin.of(ConfigMap, 'kube-system').delete('aws-auth')
  await eventually(async () => assert.equal(await mapRolesOf(admin), map), limit)

  const RoleName = roleOf(arnOf('d'))
  const trusted = async (): Promise<string> => JSON.stringify(await eks.hubAccount.iam('GetRole', { RoleName }))
  const bent = {
    Version: '2012-10-17',
    Statement: [{ Effect: 'Allow', Principal: { AWS: '*' }, Action: 'sts:AssumeRole' }],
  }
  await eks.hubAccount.iam('UpdateAssumeRolePolicy', { RoleName, PolicyDocument: JSON.stringify(bent) })
  await eks.hubAccount.iam('DeleteRolePolicy', { RoleName, PolicyName: 'ocm-hub-access' })
  assert.doesNotMatch(await trusted(), /PrincipalTag/)
  await hub.stop()
  // A check that is due: the record says when AWS was last asked.
  await runIrsaHub(t, eks, { awsAccess: 'aws-auth', awsVerifySeconds: 1 })
  await eventually(async () => assert.match(await trusted(), /PrincipalTag/), limit)
  await eventually(
    () => eks.hubAccount.iam('GetRolePolicy', { RoleName, PolicyName: 'ocm-hub-access' }).then(() => true),
    limit,
  )

  // What somebody hung on the role does not keep it.
  const PolicyArn = await eks.hubAccount.policy('foreign', allowing({ Action: 's3:*', Resource: '*' }))
  await eks.hubAccount.iam('AttachRolePolicy', { RoleName, PolicyArn })
  await admin.of(ManagedCluster).delete('d1')
  await eventually(async () => assert.deepEqual([await leftInAws(eks), await grantsOf(admin)], [[], []]), limit)
  assert.ok(!(await mapRolesOf(admin)).includes(RoleName))
})

test('R1.34 R1.63 tags of the hub are on role and access entry; where they differ, or others are wanted, they are put right, and those of somebody else stay', async (t) => {
  const hub = await runIrsaHub(t, eks, { awsResourceTags: ['team=fleet', 'cost center=a=b'] })
  await createIrsaCluster(admin, 't1', arnOf('t'))
  await says('t1', 'True', /Accepted/)
  const RoleName = roleOf(arnOf('t'))
  const tagsOfRole = async (): Promise<Record<string, string>> => {
    const answer = await eks.hubAccount.iam('ListRoleTags', { RoleName })
    const tags = listAt(answer, 'ListRoleTagsResult', 'Tags')
    return Object.fromEntries(tags.map((tag) => [textAt(tag, 'Key')!, textAt(tag, 'Value')!]))
  }
  const { accessEntryArn } = await entryOf(RoleName)
  const tagsOfEntry = async (): Promise<Record<string, string>> => {
    const { region } = eks.hubCluster
    const call = { service: 'eks', operation: 'ListTagsForResource', method: 'GET', region } as const
    const path = pathOf('tags', accessEntryArn)
    return (
      await eks.client.json<{ tags: Record<string, string> }>({ ...call, path, credentials: eks.hubAccount.root })
    ).tags
  }
  const first = { team: 'fleet', 'cost center': 'a=b' }
  assert.deepEqual([await tagsOfRole(), await tagsOfEntry()], [first, first])

  await hub.stop()
  await eks.hubAccount.iam('TagRole', {
    RoleName,
    Tags: [
      { Key: 'cost center', Value: 'changed' },
      { Key: 'owner', Value: 'somebody' },
    ],
  })
  await runIrsaHub(t, eks, { awsResourceTags: ['team=platform', 'cost center=a=b'] })
  const second = { team: 'platform', 'cost center': 'a=b' }
  await eventually(async () => {
    assert.deepEqual([await tagsOfRole(), await tagsOfEntry()], [{ ...second, owner: 'somebody' }, second])
  }, limit)
  await admin.of(ManagedCluster).delete('t1')
  await eventually(async () => assert.deepEqual([await leftInAws(eks), await grantsOf(admin)], [[], []]), limit)
})
