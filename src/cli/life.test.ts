/** The life of a cluster through the commands alone: against real API servers, a real hub and a real agent, every command twice. */
import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { ClusterManager, Klusterlet, ManagedCluster, ManagedClusterSetBinding, ManifestWork } from '../api/index.ts'
import {
  CertificateSigningRequest,
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  kubeconfigText,
  Namespace,
  Secret,
  ServiceAccount,
  type Client,
} from '../kube/index.ts'
import { isTrue } from '../runtime/index.ts'
import {
  runCli,
  startAgent,
  startControlPlane,
  startHub,
  type CliResult,
  type ControlPlane,
  type LanyardProcess,
} from '../../testkit/index.ts'

let hub: ControlPlane
let managed: ControlPlane
let admin: Client
let local: Client
let agent: LanyardProcess

const atHub = (...args: string[]): Promise<CliResult> => runCli([...args, '--kubeconfig', hub.kubeconfig])
const atManaged = (...args: string[]): Promise<CliResult> => runCli([...args, '--kubeconfig', managed.kubeconfig])

/** What a command printed, having succeeded. */
const ok = (result: CliResult): CliResult => {
  assert.equal(result.code, 0, result.err)
  return result
}

interface Ticket {
  'hub-token': string
  'hub-apiserver': string
  'ca-hash': string
  'join-command': string
  expires: string
}
const ticket = async (): Promise<Ticket> => JSON.parse(ok(await atHub('get', 'token', '-o', 'json')).out) as Ticket
const joinArgs = ({ 'hub-token': token, 'hub-apiserver': server, 'ca-hash': hash }: Ticket): string[] =>
  `join --hub-token ${token} --hub-apiserver ${server} --ca-hash ${hash} --cluster-name c1`.split(' ')

before(async () => {
  ;[hub, managed] = await Promise.all([startControlPlane(), startControlPlane()])
  admin = hub.client()
  local = managed.client()
})
after(() => Promise.all([hub.stop(), managed.stop()]))

test('R1.4 a dry run of init says what it would install, and installs nothing', async () => {
  const { err } = ok(await atHub('init', '--dry-run'))
  assert.match(err, /would be created: Deployment open-cluster-management\/cluster-manager/)
  assert.match(err, /would be created: ClusterManager cluster-manager/)
  assert.equal((await runCli(['get', 'clusters', '--kubeconfig', hub.kubeconfig])).code, 1)
})

test('R1.2 R1.5 init installs a hub, tries its signer and removes the trial, and prints how to join', async () => {
  const { out, err } = ok(await atHub('init', '--output-join-command-file', join(hub.folder, 'join.sh')))
  assert.match(err, /done: trying whether this hub signs client certificates/)
  assert.doesNotMatch(err, /Warning: this hub/)
  assert.match(
    out,
    /\n {4}clusteradm join --hub-token \S+ --hub-apiserver https:\/\/127\S+ --ca-hash sha256:[0-9a-f]{64} --cluster-name <cluster_name>\n/,
  )
  assert.match(out, /LANYARD_HUB_TOKEN/)
  assert.deepEqual((await admin.of(CertificateSigningRequest).list()).items, [])
  const { spec } = await admin.of(ClusterManager).get('cluster-manager')
  assert.deepEqual(spec?.registrationConfiguration?.registrationDrivers, [{ authType: 'csr' }])
  // It holds a token.
  assert.equal(statSync(join(hub.folder, 'join.sh')).mode & 0o777, 0o700)
  assert.match(readFileSync(join(hub.folder, 'join.sh'), 'utf8'), /--cluster-name "\$1"\n$/)
})

test('R1.2 init again changes nothing but what its flags say', async () => {
  await admin.of(ClusterManager).patch('cluster-manager', { merge: { spec: { registrationImagePullSpec: 'mine' } } })
  assert.match(ok(await atHub('init')).err, /Everything is installed already/)
  ok(await atHub('init', '--feature-gates', 'NilExecutorValidating=true'))
  const { spec } = await admin.of(ClusterManager).get('cluster-manager')
  assert.equal(spec?.registrationImagePullSpec, 'mine')
  assert.deepEqual(spec?.workConfiguration?.featureGates, [{ feature: 'NilExecutorValidating', mode: 'Enable' }])
})

test('two runs of init at the same time both end well', async () => {
  const runs = await Promise.all([atHub('init', '--force'), atHub('init', '--force')])
  assert.deepEqual(
    runs.map(({ code, err }) => (code ? err : '')),
    ['', ''],
  )
})

test('get token gives a token that expires, twice, and delete token ends them all', async () => {
  await startHub(hub)
  const [first, second] = [await ticket(), await ticket()]
  assert.notEqual(first['hub-token'], second['hub-token'])
  assert.ok(Date.parse(first.expires) > Date.now() + 3_000_000)
  assert.match(ok(await atHub('get', 'token')).out, /^token=\S+\n/)
  assert.match(ok(await atHub('delete', 'token')).out, /All tokens for joining have ended/)
  assert.match(ok(await atHub('delete', 'token')).out, /There are no tokens/)
  assert.equal(
    await admin.of(ServiceAccount, 'open-cluster-management').find('agent-registration-bootstrap'),
    undefined,
  )
  const refused = await atHub('get', 'token')
  assert.equal(refused.code, 1)
  assert.match(refused.err, /does not exist\n {2}run clusteradm init/)
  const late = await runCli([...joinArgs(first), '--kubeconfig', managed.kubeconfig])
  assert.equal(late.code, 1)
  assert.match(late.err, /refuses the token: it is wrong, expired, or from another hub\n {2}get a new one on the hub/)
  ok(await atHub('init'))
})

test('a bootstrap token of Kubernetes is made with an end, and clean-up finds it', async () => {
  const { out } = ok(await atHub('get', 'token', '--use-bootstrap-token', '--ttl', '1h', '-o', 'json'))
  const { 'hub-token': token } = JSON.parse(out) as Ticket
  assert.match(token, /^[a-z0-9]{6}\.[a-z0-9]{16}$/)
  const secret = await admin.of(Secret, 'kube-system').get(`bootstrap-token-${token.slice(0, 6)}`)
  assert.ok(Buffer.from(secret.data!['expiration']!, 'base64').toString() > new Date().toISOString())
})

test('R1.12 R1.15 join installs the agent with a verified hub; a dry run before it changes nothing', async () => {
  const args = joinArgs(await ticket())
  ok(await atManaged(...args, '--dry-run'))
  assert.equal((await atManaged('get', 'klusterlet-info')).code, 1)
  const { out } = ok(await atManaged(...args))
  assert.match(out, /\n {4}clusteradm accept --clusters c1\n/)
  const { spec } = await local.of(Klusterlet).get('klusterlet')
  assert.equal(spec?.clusterName, 'c1')
  assert.deepEqual(spec?.registrationConfiguration?.registrationDriver, { authType: 'csr' })
  const secret = await local.of(Secret, 'open-cluster-management-agent').get('bootstrap-hub-kubeconfig')
  const kubeconfig = Buffer.from(secret.data!['kubeconfig']!, 'base64').toString()
  assert.match(kubeconfig, /certificate-authority-data: \S+/)
  assert.doesNotMatch(kubeconfig, /insecure/)
})

test('R1.54 R1.68 a cluster that is managed from here may be out of reach: join goes on, unjoin does not take its works unseen', async (t) => {
  const args = [...joinArgs(await ticket()).slice(0, -1), 'h1']
  const hosted = async (server: string, token = 'wrong'): Promise<CliResult> => {
    const file = join(managed.folder, 'hosted.kubeconfig')
    writeFileSync(file, await kubeconfigText({ cluster: 'h1', server, ca: managed.ca, user: { token } }))
    return atManaged(...args, '--mode', 'hosted', '--managed-cluster-kubeconfig', file)
  }
  const refused = await hosted(managed.server)
  assert.equal(refused.code, 1)
  assert.match(refused.err, /hosted.kubeconfig refuses the credential in it\n {2}give --managed-cluster-kubeconfig/)
  assert.match(ok(await hosted('https://127.0.0.1:1')).err, /Warning: .*127.0.0.1:1.*from here nothing was checked/)
  const [klusterlet] = (await local.of(Klusterlet).list({ fieldSelector: 'metadata.name!=klusterlet' })).items
  const { name = '' } = klusterlet!.metadata
  t.after(() => Promise.all([local.of(Klusterlet).delete(name), local.of(Namespace).delete(name)]))
  assert.deepEqual([klusterlet!.spec?.clusterName, klusterlet!.spec?.deployOption?.mode], ['h1', 'Hosted'])
  const unseen = await atManaged('unjoin', '--cluster-name', 'h1')
  assert.equal(unseen.code, 1)
  assert.match(unseen.err, /from here nobody can see what cluster h1 still carries out\n {2}leave where/)
  assert.equal((await local.of(Klusterlet).get(name)).metadata.deletionTimestamp, undefined)
})

test('join again, with the token from a file or the environment, changes only the token', async () => {
  const { 'hub-token': token, ...rest } = await ticket()
  const withoutToken = joinArgs({ 'hub-token': '', ...rest }).filter((arg) => arg !== '--hub-token' && arg !== '')
  const piped = await runCli([...withoutToken, '--hub-token-file', '-', '--kubeconfig', managed.kubeconfig], {
    stdin: `${token}\n`,
  })
  assert.deepEqual(ok(piped).err.match(/(created|updated): .*/g), [
    'updated: Secret open-cluster-management-agent/bootstrap-hub-kubeconfig',
  ])
  const env = { LANYARD_HUB_TOKEN: token }
  const named = await runCli([...withoutToken, '--kubeconfig', managed.kubeconfig], { env })
  assert.match(ok(named).err, /Everything is installed already/)
})

test('R1.31 R1.36 accept of a cluster that has not asked says so, or waits for it with --wait', async () => {
  const early = await atHub('accept', '--clusters', 'c1')
  assert.equal(early.code, 1)
  assert.match(early.err, /there is no cluster c1\n.*\n.*add --wait/)
  const accepted = atHub('accept', '--clusters', 'c1', '--wait')
  agent = await startAgent(managed, 'c1')
  const { out } = ok(await accepted)
  assert.match(out, /Cluster c1 has joined; approved: \S+\./)
  const cluster = await admin.of(ManagedCluster).get('c1')
  assert.ok(isTrue(cluster, 'ManagedClusterJoined') && isTrue(cluster, 'ManagedClusterConditionAvailable'))
})

test('R1.36 accept twice says so and does nothing, also when the requests are long gone', async () => {
  const csrs = admin.of(CertificateSigningRequest)
  for (const { metadata } of (await csrs.list()).items) await csrs.delete(metadata.name!)
  const { writes } = await hub.requestsBy('clusteradm')
  for (const more of [[], ['--wait']])
    assert.equal(ok(await atHub('accept', '--clusters', 'c1', ...more)).out, 'Cluster c1 has joined.\n')
  assert.equal((await hub.requestsBy('clusteradm')).writes, writes)
})

test('R1.35 who may not accept is told which right is missing, and neither certificate nor cluster is touched', async () => {
  const rule = (apiGroups: string[], resources: string[], verbs: string[]) => ({ apiGroups, resources, verbs })
  const rules = [
    rule(['cluster.open-cluster-management.io'], ['managedclusters'], ['get', 'list', 'patch']),
    rule(['certificates.k8s.io'], ['certificatesigningrequests', 'certificatesigningrequests/approval'], ['*']),
    rule(['certificates.k8s.io'], ['signers'], ['approve']),
    rule([''], ['namespaces'], ['get']),
  ]
  const apiGroup = 'rbac.authorization.k8s.io'
  await admin.of(ClusterRole).create({ metadata: { name: 'helper' }, rules })
  await admin.of(ClusterRoleBinding).create({
    metadata: { name: 'helper' },
    roleRef: { apiGroup, kind: 'ClusterRole', name: 'helper' },
    subjects: [{ apiGroup, kind: 'User', name: 'helper' }],
  })
  await admin.of(ManagedCluster).create({ metadata: { name: 'c5' }, spec: {} })
  const kubeconfig = hub.kubeconfigFor({ user: 'helper' })
  const { code, err } = await runCli(['accept', '--clusters', 'c5', '--skip-approve-check', '--kubeconfig', kubeconfig])
  assert.equal(code, 1)
  assert.match(
    err,
    /Error: you may not let cluster c5 in: .*\n {2}ask for the rights to patch .* and to update managedclusters\/accept/,
  )
  assert.equal((await admin.of(ManagedCluster).get('c5')).spec.hubAcceptsClient, false)
  await admin.of(ManagedCluster).delete('c5')
})

test('clusters are listed as a table, JSON and YAML; an unknown name is met with the nearest', async () => {
  assert.match(ok(await atHub('get', 'clusters')).out, /^NAME .*\nc1 +true +true +True +default /)
  const [cluster] = JSON.parse(ok(await atHub('get', 'clusters', 'c1', '-o', 'json')).out) as Record<string, unknown>[]
  assert.deepEqual([cluster!['name'], cluster!['accepted'], cluster!['available']], ['c1', true, 'True'])
  assert.match(ok(await atHub('get', 'clusters', '-o', 'yaml')).out, /^- name: c1\n/)
  assert.match((await atHub('get', 'clusters', 'c2')).err, /there is no cluster c2\n {2}did you mean c1\?/)
  assert.equal(ok(await atHub('get', 'clusters', '--clusterset', 'none')).out, 'No clusters in set none.\n')
})

test('sets: clusters move in, namespaces are bound and unbound, and a set in use is not deleted', async () => {
  assert.match(ok(await atHub('create', 'clusterset', 'prod')).out, /created/)
  assert.match(ok(await atHub('create', 'clusterset', 'prod')).out, /exists already/)
  assert.match(ok(await atHub('clusterset', 'set', 'prod', '--clusters', 'c1')).out, /moved from default to prod/)
  assert.match(ok(await atHub('clusterset', 'set', 'prod', '--clusters', 'c1')).out, /is in prod already/)
  for (const said of [/may use cluster/, /may use already/])
    assert.match(ok(await atHub('clusterset', 'bind', 'prod', '-n', 'default')).out, said)
  assert.equal((await admin.of(ManagedClusterSetBinding, 'default').get('prod')).spec.clusterSet, 'prod')
  assert.match(ok(await atHub('get', 'clustersets', 'prod')).out, /\nprod +1 +default /)
  assert.match(
    (await atHub('delete', 'clusterset', 'prod')).err,
    /is used by the namespaces default\n {2}unbind it first/,
  )
  for (const said of [/may no longer use/, /did not use/])
    assert.match(ok(await atHub('clusterset', 'unbind', 'prod')).out, said)
  assert.match((await atHub('delete', 'clusterset', 'prod')).err, /has 1 clusters, c1 among them/)
  ok(await atHub('clusterset', 'set', 'default', '--clusters', 'c1'))
  for (const said of [/: deleted/, /: there is none/])
    assert.match(ok(await atHub('delete', 'clusterset', 'prod')).out, said)
  assert.match((await atHub('clusterset', 'set', 'prod', '--clusters', 'c1')).err, /there is no cluster set prod\n/)
  assert.equal((await atHub('delete', 'clusterset', 'default')).code, 1)
})

const manifests = `
apiVersion: v1
kind: Namespace
metadata: { name: delivered }
---
apiVersion: v1
kind: List
items:
  - { apiVersion: v1, kind: ConfigMap, metadata: { name: hello, namespace: delivered }, data: { a: "1" } }
`
const createWork = (name: string, text: string, ...more: string[]): Promise<CliResult> =>
  runCli(['create', 'work', name, '-f', '-', '--clusters', 'c1', ...more, '--kubeconfig', hub.kubeconfig], {
    stdin: text,
  })

test('create work delivers manifests and lists taken apart; again it is unchanged, and another one needs --overwrite', async () => {
  assert.match(ok(await createWork('hello', manifests, '--wait')).out, /work hello of cluster c1: created/)
  assert.equal((await local.of(ConfigMap, 'delivered').get('hello')).data?.['a'], '1')
  assert.match(ok(await createWork('hello', manifests)).out, /unchanged/)
  const changed = manifests.replace('"1"', '"2"')
  const refused = await createWork('hello', changed)
  assert.match(refused.err, /cluster c1 has a work hello with other manifests\n {2}give --overwrite/)
  assert.match(ok(await createWork('hello', changed, '--overwrite', '--wait')).out, /updated/)
  assert.equal((await local.of(ConfigMap, 'delivered').get('hello')).data?.['a'], '2')
  const work = JSON.stringify({
    apiVersion: 'work.open-cluster-management.io/v1',
    kind: 'ManifestWork',
    metadata: { name: 'x' },
  })
  assert.match((await createWork('wrapped', work)).err, /holds a ManifestWork, which would be wrapped/)
  assert.match(ok(await atHub('get', 'works', '--clusters', 'c1')).out, /\nhello +c1 +2 +True +True /)
  assert.equal(ok(await atHub('get', 'addons')).out, 'No add-ons.\n')
})

test('names of clusters, works and contexts are completed from the cluster that the line means', async () => {
  const complete = async (...words: string[]) =>
    (await runCli(['__complete', '--', '--kubeconfig', hub.kubeconfig, ...words])).out.trimEnd().split('\n')
  assert.deepEqual(await complete('accept', '--clusters', ''), ['c1'])
  assert.deepEqual(await complete('accept', '--clusters', 'x,c'), ['x,c1'])
  assert.deepEqual(await complete('accept', '--clusters=c'), ['--clusters=c1'])
  assert.deepEqual(await complete('get', 'works', 'he'), ['hello'])
  assert.deepEqual(await complete('clusterset', 'bind', 'de'), ['default'])
  assert.deepEqual(await complete('get', 'clusters', '--out'), ['--output\tHow to print: table, json or yaml'])
})

test('R1.64 doctor does not look for a hub elsewhere than its ClusterManager runs it', async () => {
  const { code, err } = await atHub('doctor', '--hub-namespace', 'elsewhere')
  assert.equal(code, 2)
  assert.match(err, /ClusterManager cluster-manager runs its hub in open-cluster-management-hub/)
})

test('information about hub and agent is printed in every form', async () => {
  assert.match(ok(await atHub('get', 'hub-info')).out, /Clusters: 1, of which 1 are let in\n/)
  const { kinds } = JSON.parse(ok(await atHub('get', 'hub-info', '-o', 'json')).out) as {
    kinds: Record<string, string>
  }
  assert.equal(kinds['managedclusters.cluster.open-cluster-management.io'], '*v1')
  assert.match(
    ok(await atManaged('get', 'klusterlet-info')).out,
    /Klusterlet klusterlet: cluster c1, Default, csr\n.*credential for the hub: there/,
  )
})

test('upgrade changes the image of the operator and nothing else, and again nothing at all', async () => {
  const spec = async () => JSON.stringify((await admin.of(ClusterManager).get('cluster-manager')).spec)
  const before = await spec()
  const upgraded = ['upgrade', 'clustermanager', '--image-registry', 'registry.example', '--bundle-version', '9.9.9']
  assert.match(ok(await atHub(...upgraded)).out, /from lanyard:\S+ to registry\.example\/lanyard:9\.9\.9\./)
  assert.match(ok(await atHub(...upgraded)).out, /runs registry\.example\/lanyard:9\.9\.9 already/)
  assert.equal(await spec(), before)
  assert.match(ok(await atHub('init')).err, /Everything is installed already/)
  const agent = ok(await atManaged('upgrade', 'klusterlet', '--image', 'mine:1', '--dry-run'))
  assert.match(agent.err, /would be updated: Deployment open-cluster-management\/klusterlet/)
})

test('unjoin refuses while works are carried out, with exit code 1; delete work removes what it brought', async () => {
  const refused = await atManaged('unjoin', '--cluster-name', 'c1')
  assert.equal(refused.code, 1)
  assert.match(refused.err, /cluster c1 still carries out 1 works: hello\n {2}delete them on the hub/)
  assert.ok((await admin.of(ManagedCluster).get('c1')).spec.hubAcceptsClient)
  assert.match((await atManaged('unjoin', '--cluster-name', 'c9')).err, /did not join as c9, but as c1/)
  assert.match(ok(await atHub('delete', 'work', 'hello', '--clusters', 'c1')).out, /: deleted/)
  assert.equal(await local.of(ConfigMap, 'delivered').find('hello'), undefined)
  assert.match(ok(await atHub('delete', 'work', 'hello', '--clusters', 'c1')).out, /there is none/)
  assert.deepEqual((await admin.of(ManifestWork, 'c1').list()).items, [])
})

test("R1.54 unjoin tells the hub with the cluster's own credential, waits for it, and removes agent and operator", async () => {
  await agent.process.stop() // what the operator does when the Klusterlet goes
  const { out } = ok(await atManaged('unjoin', '--cluster-name', 'c1'))
  assert.match(out, /^Cluster c1 has left its hub\.\nOn the hub, ManagedCluster c1 remains without access/)
  const cluster = await admin.of(ManagedCluster).get('c1')
  assert.equal(cluster.spec.hubAcceptsClient, false)
  assert.equal(cluster.status?.conditions?.find(({ type }) => type === 'HubAcceptedManagedCluster')?.status, 'False')
  const gone = await managed.kubectl(['get', 'crd,namespaces,clusterroles,clusterrolebindings', '-o', 'name'])
  assert.doesNotMatch(gone, /klusterlet|open-cluster-management-agent|namespace\/open-cluster-management/)
  assert.match(ok(await atManaged('unjoin', '--cluster-name', 'c1')).out, /nothing to do/)
})

test('clean refuses while clusters are let in; then it takes everything away, ManagedClusters of the departed too', async () => {
  await admin.of(ManagedCluster).create({ metadata: { name: 'c2' }, spec: { hubAcceptsClient: true } })
  const refused = await atHub('clean')
  assert.equal(refused.code, 1)
  assert.match(refused.err, /this hub still manages 1 clusters: c2\n {2}unjoin them first/)
  await admin.of(ManagedCluster).patch('c2', { merge: { spec: { hubAcceptsClient: false } } })
  assert.match(ok(await atHub('clean', '--dry-run')).out, /would be removed, with the ManagedClusters c1, c2/)
  assert.match(ok(await atHub('clean')).out, /The hub is removed/)
  assert.deepEqual((await admin.of(ManagedCluster).list()).items, [])
  const kinds =
    'namespaces,clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,secrets,configmaps,deployments'
  const all = (await hub.kubectl(['get', kinds, '--all-namespaces', '-o', 'name'])).split('\n')
  // What the operator keeps and takes away itself is not ours: there is none here, the hub runs by hand.
  const left = all.filter((one) => /open-cluster-management|agent-registration|cluster-info|bootstrap-token/.test(one))
  assert.deepEqual(
    left.filter((one) => !one.includes('open-cluster-management:managedcluster:')),
    [],
  )
  assert.match(ok(await atHub('clean')).out, /nothing to do/)
})

test('R1.64 doctor looks at a hub that nobody installed where it is told that it runs', async () => {
  await startHub(managed, { args: ['--namespace=elsewhere'] })
  const lost = await atManaged('doctor')
  assert.equal(lost.code, 1, lost.err)
  assert.match(
    lost.out,
    /stuck +the hub runs: hub-not-running\n.*in namespace open-cluster-management-hub; .*--hub-namespace/,
  )
  assert.match(ok(await atManaged('doctor', '--hub-namespace', 'elsewhere')).out, /ok +the hub runs\n/)
})
