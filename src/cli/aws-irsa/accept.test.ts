/** Letting in clusters that ask by their ARN: a real API server, the local AWS that enforces policies, and the hub's own controller. */
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { startAwsFront, type AwsFront } from '../../../testkit/aws-front.ts'
import { startLocalEks, type LocalEks } from '../../../testkit/eks/index.ts'
import { eventually, rounds, runCli, runProgram, seededRandom, type CliResult } from '../../../testkit/index.ts'
import { createIrsaCluster, grantsOf, leftInAws, mapRolesOf, runIrsaHub } from '../../../testkit/irsa-hub.ts'
import { ClusterManager, crds, installCrds, ManagedCluster } from '../../api/index.ts'
import {
  clusterPair,
  creatorAccessPolicy,
  hubAccessPolicy,
  hubRoleArn,
  hubRoleName,
  hubTrustPolicy,
  managedRoleName,
  parseEksClusterArn,
  textAt,
  type Credentials,
  type PolicyDocument,
} from '../../aws/index.ts'
import {
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  Namespace,
  type Client,
  type PolicyRule,
} from '../../kube/index.ts'
import { findCondition, isTrue } from '../../runtime/index.ts'

const limit = { timeoutMs: 120_000 }
const account = '222222222222'
const foreign = `# of the nodes
- rolearn: arn:aws:iam::111111111111:role/nodes
  username: system:node:{{EC2PrivateDNSName}}
  groups: [ system:nodes ]
`

let eks: LocalEks
let admin: Client
/** Somebody with the specification's rights, and those that tags need; nothing else. */
let person: Credentials
before(async () => {
  eks = await startLocalEks({ access: 'aws-auth', plane: { controllerManager: false }, creator: { tags: true } })
  admin = eks.hub.client()
  await installCrds(admin, crds({ conversion: 'none' }))
  await eks.hubEnvironment() // makes the hub's namespace
  const metadata = { name: 'aws-auth', namespace: 'kube-system' }
  await admin.of(ConfigMap, 'kube-system').create({ metadata, data: { mapRoles: foreign } })
  const awsirsa = { hubClusterArn: eks.hubArn, tags: ['team=fleet'] }
  await admin.of(ClusterManager).create({
    metadata: { name: 'cluster-manager' },
    spec: { registrationConfiguration: { registrationDrivers: [{ authType: 'awsirsa', awsirsa }] } },
  })
  person = await eks.hubAccount.user('ada', rights())
})
after(() => eks.stop())

const rights = (): PolicyDocument => creatorAccessPolicy(parseEksClusterArn(eks.hubArn), { tags: true })
const arnOf = (name: string): string => `arn:aws:eks:us-west-2:${account}:cluster/${name}`
const pairOf = (name: string) => clusterPair(eks.hubArn, arnOf(name))

/** A cluster that asks, and whose own role is in its account, as it has to be before. */
const asking = async (name: string): Promise<ManagedCluster> => {
  const trust = { Version: '2012-10-17' as const, Statement: [] }
  await eks.account(account).role(managedRoleName(pairOf(name)), trust)
  return createIrsaCluster(admin, name, arnOf(name), { accepts: false })
}

interface Who {
  credentials?: Credentials
  endpoint?: string
  kubeconfig?: string
  signal?: AbortSignal
}
const environment = ({ credentials = person, endpoint = eks.endpoint }: Who): Record<string, string> => ({
  AWS_ENDPOINT_URL: endpoint,
  AWS_ACCESS_KEY_ID: credentials.accessKeyId,
  AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
})
const accept = (words: string, who: Who = {}): Promise<CliResult> =>
  runCli(['accept', ...words.split(' '), '--kubeconfig', who.kubeconfig ?? eks.hub.kubeconfig], {
    env: environment(who),
    ...(who.signal && { signal: who.signal }),
  })
const ok = async (...args: Parameters<typeof accept>): Promise<CliResult> => {
  const result = await accept(...args)
  assert.equal(result.code, 0, `${args[0]}\n${result.err}${result.out}`)
  return result
}

const accepts = async (name: string): Promise<boolean | undefined> =>
  (await admin.of(ManagedCluster).get(name)).spec.hubAcceptsClient
const clean = async (): Promise<unknown> => [await leftInAws(eks), await grantsOf(admin), await mapRolesOf(admin)]
const nothing = [[], [], foreign]

/** What a cluster has in AWS and on the hub, in full. */
const given = async (name: string): Promise<unknown> => {
  const RoleName = hubRoleName(pairOf(name))
  const role = await eks.hubAccount.iam('GetRole', { RoleName })
  const policy = await eks.hubAccount.iam('GetRolePolicy', { RoleName, PolicyName: 'ocm-hub-access' })
  const document = (text = ''): unknown => JSON.parse(decodeURIComponent(text))
  const record = (await grantsOf(admin)).find(({ metadata }) => metadata.name === RoleName)
  return {
    trust: document(textAt(role, 'GetRoleResult', 'Role', 'AssumeRolePolicyDocument')),
    policy: document(textAt(policy, 'GetRolePolicyResult', 'PolicyDocument')),
    mapped: (await mapRolesOf(admin)).split(hubRoleArn(pairOf(name))).length - 1,
    digest: Boolean(record?.data?.['granted']),
  }
}
const everything = (name: string): unknown => ({
  trust: hubTrustPolicy(pairOf(name)),
  policy: hubAccessPolicy(pairOf(name)),
  mapped: 1,
  digest: true,
})

const deny = (name: string): Promise<unknown> =>
  admin.of(ManagedCluster).patch(name, { merge: { spec: { hubAcceptsClient: false } } })

test('R1.31 R1.32 R1.36 accept makes role, policies and mapping with the credentials of the person, twice as well as once; the hub finds it all there, and removes it when the cluster is denied', async (t) => {
  await asking('c1')
  const front = await startAwsFront(t, eks.endpoint)
  const dry = await ok('--clusters c1 --dry-run', { endpoint: front.endpoint })
  assert.match(dry.err, /would be made: role arn:aws:iam::111111111111:role\/ocm-hub-\w+, which arn\S+cluster\/c1 may/)
  assert.match(dry.err, /user and group system:open-cluster-management:c1, in ConfigMap kube-system\/aws-auth/)
  assert.match(dry.out, /^Cluster c1 would be let in; role: arn:aws:iam::111111111111:role\/ocm-hub-/)
  assert.deepEqual([await clean(), await accepts('c1')], [nothing, false])

  const first = await ok('--clusters c1 -o json', { endpoint: front.endpoint })
  const [outcome] = JSON.parse(first.out) as [{ strategy: string; aws: Record<string, unknown> }]
  assert.equal(outcome.strategy, 'awsirsa')
  assert.deepEqual(outcome.aws, {
    roleArn: hubRoleArn(pairOf('c1')),
    access: 'aws-auth',
    user: 'system:open-cluster-management:c1',
    record: `open-cluster-management-hub/${hubRoleName(pairOf('c1'))}`,
    wasGranted: false,
  })
  assert.match(first.err, /making role arn:aws:iam::111111111111:role\/ocm-hub-\w+ and its entry in aws-auth/)
  assert.deepEqual([await given('c1'), await accepts('c1')], [everything('c1'), true])
  assert.ok((await mapRolesOf(admin)).startsWith(foreign), 'what others wrote stays')
  assert.ok(front.calls.every(({ accessKeyId }) => accessKeyId === person.accessKeyId))

  const before = front.calls.length
  const again = await ok('--clusters c1', { endpoint: front.endpoint })
  assert.match(
    again.out,
    /^Cluster c1 was let in already; role: .*; it joins as soon as its agent has taken on its role/,
  )
  const since = front.calls.slice(before).map(({ action }) => action)
  assert.deepEqual(
    since.filter((action) => /^(Create|Put|Update|Tag|Delete)/.test(action)),
    [],
  )
  assert.deepEqual([await given('c1'), (await leftInAws(eks)).length], [everything('c1'), 1])

  const own = await startAwsFront(t, eks.endpoint)
  await runIrsaHub(t, eks, { endpoint: own.endpoint, awsResourceTags: ['team=fleet'] })
  await eventually.watching(
    admin.of(ManagedCluster),
    ([one]) => assert.ok(isTrue(one!, 'HubAcceptedManagedCluster'), JSON.stringify(one!.status)),
    limit,
  )
  assert.equal(own.count('CreateRole') + own.count('GetRole'), 0, 'the hub takes the word of the record')
  await deny('c1')
  await eventually(async () => assert.deepEqual(await clean(), nothing), limit)
  const said = findCondition(await admin.of(ManagedCluster).get('c1'), 'HubAcceptedManagedCluster')
  assert.equal(said?.status, 'False')
  await ok('--clusters c1')
  assert.deepEqual(await given('c1'), everything('c1'))
  await admin.of(ManagedCluster).patch('c1', { merge: { metadata: { finalizers: null } } })
  await admin.of(ManagedCluster).delete('c1')
  await eventually(async () => assert.deepEqual(await clean(), nothing), limit)
})

test('R1.31 one command lets in clusters of both kinds, each its own way, and one that fails keeps no other out', async () => {
  await asking('both-irsa')
  await admin.of(ManagedCluster).create({ metadata: { name: 'both-csr' }, spec: { hubAcceptsClient: false } })
  await createIrsaCluster(admin, 'both-bad', 'arn:aws:eks:us-west-2:1:cluster/x', { accepts: false })
  const { code, out, err } = await accept('--clusters both-bad,both-csr,both-irsa')
  assert.equal(code, 1)
  assert.match(err, /cluster both-bad: .*arn:aws:eks:us-west-2:1:cluster\/x/)
  assert.match(err, /cluster both-csr: cluster both-csr is let in, but has not asked for a certificate yet/)
  assert.match(out, /^Cluster both-irsa is let in; role: arn/)
  assert.deepEqual(await given('both-irsa'), everything('both-irsa'))
  assert.deepEqual(await Promise.all(['both-bad', 'both-csr', 'both-irsa'].map(accepts)), [false, true, true])
  // The ARN of another cluster gives nothing.
  await createIrsaCluster(admin, 'both-thief', arnOf('both-irsa'), { accepts: false })
  const thief = await accept('--clusters both-thief')
  assert.match(
    thief.err,
    /Error: cluster both-thief says that it is \S+, which was accepted as cluster both-irsa\n {2}if/,
  )
  assert.equal(await accepts('both-thief'), false)
  await removed('both-irsa', 'both-csr', 'both-bad', 'both-thief')
})

/** Takes clusters away as the hub's controller does. */
const removed = async (...names: string[]): Promise<void> => {
  for (const name of names) {
    await admin.of(ManagedCluster).patch(name, { merge: { metadata: { finalizers: null } } })
    await admin.of(ManagedCluster).delete(name)
  }
  for (const record of await grantsOf(admin))
    await admin.of(ConfigMap, record.metadata.namespace).delete(record.metadata.name!)
  for (const RoleName of await leftInAws(eks)) {
    await eks.hubAccount.iam('DeleteRolePolicy', { RoleName, PolicyName: 'ocm-hub-access' }).catch(() => {})
    await eks.hubAccount.iam('DeleteRole', { RoleName })
  }
  const data = { mapRoles: foreign }
  await admin.of(ConfigMap, 'kube-system').patch('aws-auth', { merge: { data } })
}

/** Somebody on the hub who may do so much. */
const kubeconfigWith = async (user: string, rules: PolicyRule[]): Promise<string> => {
  await admin.of(ClusterRole).create({ metadata: { name: user }, rules })
  await admin.of(ClusterRoleBinding).create({
    metadata: { name: user },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: user },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  })
  return eks.hub.kubeconfigFor({ user })
}
const onClusters = (...verbs: string[]): PolicyRule => ({
  apiGroups: ['cluster.open-cluster-management.io', 'operator.open-cluster-management.io'],
  resources: ['managedclusters', 'clustermanagers'],
  verbs: ['get', 'list', ...verbs],
})

test('R1.35 whoever lacks credentials, the right account, a right in AWS or one on the hub is told which, and the cluster stays out with nothing made', async () => {
  await asking('c2')
  const stays = async ({ code, err }: CliResult, ...said: RegExp[]): Promise<void> => {
    assert.equal(code, 1, err)
    for (const one of said) assert.match(err, one)
    assert.doesNotMatch(err, new RegExp(person.secretAccessKey.replaceAll(/\W/g, '.')))
    assert.deepEqual([await clean(), await accepts('c2')], [nothing, false])
  }
  const none = await runProgram('clusteradm', ['accept', '--clusters', 'c2'], {
    plane: eks.hub,
    env: { HOME: eks.hub.folder, AWS_ENDPOINT_URL: eks.endpoint, AWS_EC2_METADATA_DISABLED: 'true' },
  })
  await stays(
    { code: none.code, out: none.stdout, err: none.stderr },
    /Error: cluster c2 asks to join by aws-irsa, and its role cannot be made: .*there are no AWS credentials/,
    /\n {2}set AWS_PROFILE or AWS_ACCESS_KEY_ID/,
  )
  await stays(
    await accept('--clusters c2', { credentials: eks.account(account).root }),
    /Error: you are arn:aws:iam::222222222222:root of account 222222222222, and the roles of this hub belong into account 111111111111\n/,
    /use credentials of account 111111111111/,
  )
  const wrong = { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: 'x' }
  await stays(await accept('--clusters c2', { credentials: wrong }), /AWS does not take your credentials/)

  const kubeconfig = await kubeconfigWith('reader', [onClusters()])
  await stays(await accept('--clusters c2', { kubeconfig }), /Error: you may not let cluster c2 in: .*cannot patch/)
  const patcher = await kubeconfigWith('patcher', [onClusters('patch')])
  await stays(
    await accept('--clusters c2', { kubeconfig: patcher }),
    /you may not let cluster c2 in: .*cannot list resource "configmaps" in API group "" in the namespace "open-cluster-management-hub"/,
  )
  const configmaps = { apiGroups: [''], resources: ['configmaps'] }
  const halfway = await kubeconfigWith('halfway', [
    onClusters('patch'),
    { ...configmaps, verbs: ['get', 'list'] },
    { ...configmaps, resourceNames: ['nobody'], verbs: ['update'] },
  ])
  await stays(
    await accept('--clusters c2', { kubeconfig: halfway }),
    /Error: you may not let cluster c2 in: you may not create configmaps in namespace open-cluster-management-hub, nor update configmaps in namespace open-cluster-management-hub, nor update configmap kube-system\/aws-auth\n/,
  )

  const poor = await eks.hubAccount.user('poor')
  const denied = await accept('--clusters c2', { credentials: poor })
  assert.equal(denied.code, 1)
  assert.match(
    denied.err,
    /Error: cluster c2 is not let in: arn:aws:iam::111111111111:user\/poor may not do iam:CreateRole in AWS\n {2}give them this statement: \{"Effect":"Allow","Action":"iam:CreateRole","Resource":\["arn:aws:iam::111111111111:role\/ocm-hub-\*"/,
  )
  assert.deepEqual([await leftInAws(eks), await accepts('c2')], [[], false])

  await ok('--clusters c2')
  assert.deepEqual([await given('c2'), await accepts('c2')], [everything('c2'), true])
  await removed('c2')
})

/** The command, ended by the person at the nth call to AWS. */
const interruptedAt = async (t: TestContext, name: string, nth: number): Promise<CliResult & { front: AwsFront }> => {
  const front = await startAwsFront(t, eks.endpoint)
  const stop = new AbortController()
  // What AWS did the person does not see: half of the time the call arrives, half of the time it does not.
  front.fault = () => {
    if (front.calls.length !== nth) return undefined
    stop.abort(new Error('SIGINT'))
    return nth % 2 === 0 ? 'hang' : undefined
  }
  const result = await accept(`--clusters ${name}`, { endpoint: front.endpoint, signal: stop.signal })
  return { ...result, front }
}

test('R1.36 an accept that is interrupted at any call to AWS, or runs twice at once, is finished by the next: nothing is double, and the cluster is let in last', async (t) => {
  const random = seededRandom(t)
  const calls = 4 // GetCallerIdentity, DescribeCluster, CreateRole, PutRolePolicy
  for (let round = 0; round < rounds(calls); round++) {
    const name = `halt-${round}`
    await asking(name)
    const { code, err } = await interruptedAt(t, name, (round % calls) + 1)
    assert.equal(code, 130, err)
    assert.match(err, /Error: interrupted\n {2}what was done stays; run the same command again to finish it/)
    assert.equal(await accepts(name), false)
    const both = random.next() < 0.5 ? [ok(`--clusters ${name}`), ok(`--clusters ${name}`)] : [ok(`--clusters ${name}`)]
    await Promise.all(both)
    assert.deepEqual([await given(name), await accepts(name)], [everything(name), true])
    assert.equal((await leftInAws(eks)).length, 1)
    await removed(name)
  }
})

test('R1.31 the hub says which cluster it is: a flag that says otherwise is refused, and so is a hub that does not take aws-irsa', async () => {
  await asking('c3')
  const other = await accept(`--clusters c3 --hub-cluster-arn ${arnOf('hub')}`)
  assert.equal(other.code, 2)
  assert.match(other.err, /--hub-cluster-arn says \S+, and ClusterManager cluster-manager says/)
  const elsewhere = await accept('--clusters c3 --hub-namespace elsewhere')
  assert.equal(elsewhere.code, 2)
  assert.match(
    elsewhere.err,
    /--hub-namespace says elsewhere, and ClusterManager cluster-manager runs its hub in open-/,
  )
  const managers = admin.of(ClusterManager)
  const only = { registrationConfiguration: { registrationDrivers: [{ authType: 'csr' }] } }
  await managers.patch('cluster-manager', { merge: { spec: only } })
  const csr = await accept('--clusters c3')
  assert.equal(csr.code, 1)
  assert.match(
    csr.err,
    /this hub does not take aws-irsa: its ClusterManager cluster-manager has csr only\n {2}turn it on:/,
  )
  await managers.delete('cluster-manager')
  const unknown = await accept('--clusters c3')
  assert.equal(unknown.code, 2)
  assert.match(unknown.err, /--hub-cluster-arn is missing/)
  assert.deepEqual([await clean(), await accepts('c3')], [nothing, false])
  await ok(`--clusters c3 --hub-cluster-arn ${eks.hubArn} --aws-access aws-auth`)
  assert.equal(await accepts('c3'), true)
  await removed('c3')
})

test('R1.31 R1.56 a hub that no operator runs may be in any namespace: accept writes down what it gives where that hub looks, which takes it back', async (t) => {
  await asking('c4')
  const words = `--clusters c4 --hub-cluster-arn ${eks.hubArn} --hub-namespace my-hub`
  const nowhere = await accept(words)
  assert.equal(nowhere.code, 1)
  assert.match(nowhere.err, /Error: this hub has no namespace my-hub\n {2}.*say where: --hub-namespace/)
  assert.deepEqual([await clean(), await accepts('c4')], [nothing, false])

  await admin.of(Namespace).create({ metadata: { name: 'my-hub' } })
  const { out } = await ok(`${words} -o json`)
  const [{ aws }] = JSON.parse(out) as [{ aws: { record: string } }]
  assert.equal(aws.record, `my-hub/${hubRoleName(pairOf('c4'))}`)
  const records = admin.of(ConfigMap, 'my-hub')
  assert.ok(await records.find(hubRoleName(pairOf('c4'))))
  assert.deepEqual(await grantsOf(admin), [], 'nothing where that hub does not look')

  const own = await startAwsFront(t, eks.endpoint)
  await runIrsaHub(t, eks, { endpoint: own.endpoint, namespace: 'my-hub' })
  const accepted = async (): Promise<void> =>
    assert.ok(isTrue(await admin.of(ManagedCluster).get('c4'), 'HubAcceptedManagedCluster'))
  await eventually(accepted, limit)
  assert.equal(own.count('CreateRole') + own.count('GetRole'), 0, 'the hub takes the word of the record')
  await deny('c4')
  await eventually(async () => {
    assert.deepEqual(await clean(), nothing)
    assert.equal(await records.find(hubRoleName(pairOf('c4'))), undefined)
  }, limit)
})
