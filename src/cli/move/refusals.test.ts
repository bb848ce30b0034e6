/** What stands in the way of a move is found before anything is paused; and each trap that other tools fall into. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { createCluster } from '../../../testkit/aws-network.ts'
import {
  controllerIdentity,
  createKeys,
  hubNamespace,
  isReady,
  namespace,
  roleReference,
  runIdentities,
  stands,
  staticReference,
  type IdentityHub,
} from '../../../testkit/identity-hub.ts'
import {
  eventually,
  startControlPlane,
  startLocalAws,
  type ControlPlane,
  type LocalAws,
} from '../../../testkit/index.ts'
import {
  clusterctl,
  contentsOfNamespace,
  installForeign,
  machineDeployments,
  machineTemplates,
  withMachines,
} from '../../../testkit/move-scene.ts'
import {
  AWSCluster,
  AWSClusterControllerIdentity,
  AWSClusterRoleIdentity,
  AWSClusterStaticIdentity,
  Cluster,
  crds,
  installCrds,
} from '../../api/index.ts'
import { ClusterRole, ClusterRoleBinding, Namespace, Secret, type Client } from '../../kube/index.ts'

let one: ControlPlane
let two: ControlPlane
let local: LocalAws
let here: Client
let there: Client
before(async () => {
  ;[one, two, local] = await Promise.all([
    startControlPlane({ controllerManager: false, audit: false }),
    startControlPlane({ controllerManager: false, audit: false }),
    startLocalAws(),
  ])
  here = one.client()
  there = two.client()
  for (const client of [here, there]) {
    await installCrds(client, crds({ conversion: 'none', borrowed: true }))
    await namespace(client, hubNamespace)
  }
  await installForeign(here)
})
after(() => Promise.all([one.stop(), two.stop(), local.stop()]))

const flags = ['--hub-namespace', hubNamespace]
const all = { allowedNamespaces: {} }
const keysOf = (id: string) => ({ accessKeyId: `AKIA${id}`, secretAccessKey: `very-secret-${id}` })

/** Refused with these words, and nothing is paused or made anywhere. */
const refused = async (words: string[], says: RegExp, from = one.kubeconfig, to = two.kubeconfig): Promise<string> => {
  const { code, err, out } = await clusterctl([...words, ...flags], { kubeconfig: from }, { kubeconfig: to })
  assert.equal(code, 1, out)
  assert.match(err, says)
  assert.match(err, /nothing was changed/)
  assert.doesNotMatch(err, /very-secret/)
  const space = words[words.indexOf('-n') + 1]!
  assert.deepEqual(await contentsOfForeign(there, space), [])
  for (const kind of [Cluster, AWSCluster])
    for (const { metadata } of (await here.of(kind as typeof Cluster, space).list()).items)
      assert.equal(metadata.annotations?.['move.lanyard.io/moving-to'], undefined)
  return err
}

const contentsOfForeign = async (client: Client, space: string): Promise<string[]> =>
  (await client.of(AWSCluster, space).list()).items.map(({ metadata }) => metadata.name!)

const moved = async (words: string[], from = one, to: ControlPlane | 'directory' = two): Promise<string> => {
  const { code, out, err } = await clusterctl([...words, ...flags], from, to === 'directory' ? undefined : to)
  assert.equal(code, 0, `${err}${out}`)
  return out
}

/** A cluster with a key of its own, on a hub where nobody ever looked at it. */
const unseen = async (
  key: string,
  { labels = {}, ...spec }: { labels?: Record<string, string>; allowedNamespaces?: object } = {},
): Promise<string> => {
  const name = key.replace('/', '-')
  await namespace(here, key.split('/')[0]!, labels)
  await createKeys(here, `${hubNamespace}/${name}`, keysOf(name))
  const secretRef = { namespace: hubNamespace, name }
  await here.of(AWSClusterStaticIdentity).create({ metadata: { name }, spec: { ...all, secretRef, ...spec } })
  await createCluster(here, key, { spec: { identityRef: staticReference(name) as never } })
  return name
}

test('R3.56 R3.74 a target without a kind, with an older one, a paused cluster, a broken chain, a missing Secret, no rights on a side: each is named with the way out, before anything is paused', async () => {
  const name = await unseen('pre/c')
  await withMachines(here, 'pre/c')
  const move = ['-n', 'pre', '--no-account-check']

  await refused(move, /CRD machinedeployments.cluster.x-k8s.io is missing/)
  const crd = machineDeployments.crd
  const at = (name: string, storage: boolean) => ({ ...crd.spec.versions[0]!, name, storage })
  const serving = (...versions: ReturnType<typeof at>[]) => ({ ...crd, spec: { ...crd.spec, versions } })
  await installCrds(there, [serving(at('v1alpha4', true)), machineTemplates.crd])
  await refused(move, /serves MachineDeployment as cluster.x-k8s.io\/v1alpha4 and not as .*v1beta1.*older/)
  await installCrds(there, [serving(at('v1beta1', true), at('v1alpha4', false))])
  await eventually(() => there.of(machineDeployments.kind, 'default').list()) // discovery follows a moment later

  const clusters = here.of(Cluster, 'pre')
  await clusters.patch('c', { merge: { spec: { paused: true } } })
  await refused(move, /Cluster pre\/c is paused, by somebody[^]*"paused":null/)
  await clusters.patch('c', { merge: { spec: { paused: null } } })
  const own = here.of(AWSCluster, 'pre')
  await own.patch('c', { merge: { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } } })
  await refused(move, /AWSCluster pre\/c is paused[^]*annotate awsclusters.* c cluster.x-k8s.io\/paused-/)
  await own.patch('c', { merge: { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } } })

  await own.patch('c', { merge: { spec: { identityRef: roleReference('nowhere') } } })
  await refused(
    move,
    /AWSCluster pre\/c: its identity cannot be used at the source[^]*AWSClusterRoleIdentity nowhere does not exist/,
  )
  await own.patch('c', { merge: { spec: { identityRef: staticReference(name) } } })

  await here.of(Secret, hubNamespace).delete(name)
  await refused(move, new RegExp(`secret ${hubNamespace}/${name} of AWSClusterStaticIdentity ${name} does not exist`))
  await createKeys(here, `${hubNamespace}/${name}`, keysOf(name))

  for (const client of [here, there]) await reader(client)
  const ada = { user: 'ada' }
  await refused(
    move,
    /you may not delete clusters.cluster.x-k8s.io in namespace pre at the source/,
    one.kubeconfigFor(ada),
  )
  await refused(
    move,
    /you may not create awsclusters.* in namespace pre at the target/,
    one.kubeconfig,
    two.kubeconfigFor(ada),
  )
  await refused(move, /same cluster/, one.kubeconfig, one.kubeconfig)

  const said = await moved([...move, '--dry-run'])
  assert.match(said, /^KIND +NAME +SOURCE +TARGET +NOTE\nAWSClusterStaticIdentity +pre-c +keep +create\n/)
  await moved(move)
})

/** May look at everything and change nothing. */
const reader = async (client: Client): Promise<void> => {
  const rules = [{ apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list'] }]
  await client.of(ClusterRole).create({ metadata: { name: 'reader' }, rules })
  await client.of(ClusterRoleBinding).create({
    metadata: { name: 'reader' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reader' },
    subjects: [{ kind: 'User', name: 'ada', apiGroup: 'rbac.authorization.k8s.io' }],
  })
}

test('R3.58 an identity of the same name on the target is kept when it is the same, with its own uid; another content is refused with the difference, and no secret is shown', async () => {
  const name = await unseen('same/c')
  const { metadata } = await here.of(AWSClusterStaticIdentity).get(name)
  // As other controllers leave it: the Secret is owned by its identity.
  const owner = {
    apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta2',
    kind: 'AWSClusterStaticIdentity',
    name,
    uid: metadata.uid,
  }
  await here.of(Secret, hubNamespace).patch(name, { merge: { metadata: { ownerReferences: [owner] } } })
  const move = ['-n', 'same', '--no-account-check']
  const statics = there.of(AWSClusterStaticIdentity)

  await statics.create({ metadata: { name }, spec: { ...all, secretRef: { namespace: 'other', name } } })
  await refused(
    move,
    /exists on the target with another content: spec.secretRef is .*lanyard-hub.* at the source and .*other.* on the target/,
  )
  await statics.delete(name)
  await statics.create({ metadata: { name }, spec: { secretRef: name, allowedNamespaces: { list: ['same', 'more'] } } })
  await refused(
    move,
    /spec.allowedNamespaces is \{\} at the source and \{"list":\["more","same"\]\} on the target[^]*--keep-allowed-namespaces/,
  )
  await createKeys(there, `${hubNamespace}/${name}`, keysOf('another'))
  await refused(
    [...move, '--keep-allowed-namespaces'],
    /Secret lanyard-hub\/same-c exists on the target and holds another access key/,
  )
  await there.of(Secret, hubNamespace).delete(name)

  await moved([...move, '--keep-allowed-namespaces'])
  const kept = await statics.get(name)
  const secret = await there.of(Secret, hubNamespace).get(name)
  assert.deepEqual(
    secret.metadata.ownerReferences?.map(({ uid }) => uid),
    [kept.metadata.uid],
  )
  assert.deepEqual(kept.spec.allowedNamespaces, { list: ['same', 'more'] })
})

test('R3.56 only the identities that are needed go along, over every link and with Secrets that no controller has touched', async () => {
  await unseen('links/unused')
  await here.of(AWSClusterRoleIdentity).create({
    metadata: { name: 'near' },
    spec: {
      ...all,
      roleARN: 'arn:aws:iam::220000000021:role/a',
      sourceIdentityRef: staticReference('links-unused') as never,
    },
  })
  await here.of(AWSClusterRoleIdentity).create({
    metadata: { name: 'far' },
    spec: { ...all, roleARN: 'arn:aws:iam::220000000022:role/b', sourceIdentityRef: roleReference('near') as never },
  })
  await here
    .of(AWSClusterRoleIdentity)
    .create({ metadata: { name: 'strange' }, spec: { ...all, roleARN: 'arn:aws:iam::220000000023:role/c' } })
  await here.of(AWSCluster, 'links').patch('unused', { merge: { spec: { identityRef: roleReference('far') } } })

  await moved(['-n', 'links', '--no-account-check'])

  for (const role of ['near', 'far']) assert.ok(await there.of(AWSClusterRoleIdentity).find(role))
  assert.ok(await there.of(Secret, hubNamespace).find('links-unused'))
  assert.equal(await there.of(AWSClusterRoleIdentity).find('strange'), undefined)
  for (const role of ['near', 'far', 'strange']) assert.ok(await here.of(AWSClusterRoleIdentity).find(role))
})

test('R3.56 a namespace that is made on the target gets the labels that permission depends on; one that is there without them is not given them', async () => {
  const allowedNamespaces = { selector: { matchLabels: { tier: 'gold' } } }
  const labels = { tier: 'gold', colour: 'blue' }
  await unseen('gold/c', { labels, allowedNamespaces })
  await unseen('poor/c', { labels, allowedNamespaces })
  await namespace(there, 'poor')

  await refused(
    ['-n', 'poor', '--no-account-check'],
    /cannot be used at the target[^]*kubectl label namespace poor tier=gold/,
  )
  await moved(['-n', 'gold', '--no-account-check'])

  const { metadata } = await there.of(Namespace).get('gold')
  assert.deepEqual(
    { tier: metadata.labels?.['tier'], colour: metadata.labels?.['colour'] },
    { tier: 'gold', colour: undefined },
  )
})

test('R3.58 the target’s own controller says that it reaches another account: nothing is moved, and what was copied is taken back', async (t) => {
  const hub = await runIdentities(t, two, local)
  await here.of(AWSClusterControllerIdentity).create({ metadata: { name: 'default' }, spec: all })
  const accountID = '999999999999'
  await createCluster(here, 'wrong/c', { spec: { identityRef: controllerIdentity as never, accountID } })

  await refused(
    ['-n', 'wrong'],
    /does not reach the account of AWSCluster wrong\/c by AWSClusterControllerIdentity default[^]*lives in account 999999999999[^]*reaches account 111111111111/,
  )
  assert.equal((await here.of(Cluster, 'wrong').get('c')).spec?.paused, undefined)
  assert.deepEqual((await hub.client.of(AWSClusterControllerIdentity).list()).items, [])
  await removeCluster('wrong/c')
})

const removeCluster = async (key: string): Promise<void> => {
  const [space, name] = key.split('/') as [string, string]
  await here.of(AWSCluster, space).delete(name)
  await here.of(Cluster, space).delete(name)
}

const folder = (t: TestContext): string => {
  const path = mkdtempSync(join(tmpdir(), 'lanyard-move-'))
  t.after(() => rmSync(path, { recursive: true }))
  return join(path, 'export')
}

const textsIn = (path: string): string =>
  readdirSync(path)
    .map((file) => readFileSync(join(path, file), 'utf8'))
    .join('\n')

test('R3.56 R3.73 into a directory and out of it: paused until somebody reads it, no secret in clear unless asked for, here again or on another hub', async (t) => {
  const hub: IdentityHub = await runIdentities(t, two, local)
  const name = 'files-c'
  const keys = await hub.account('220000000031').user(name)
  await namespace(here, 'files')
  await createKeys(here, `${hubNamespace}/${name}`, keys)
  await here.of(AWSClusterStaticIdentity).create({ metadata: { name }, spec: { ...all, secretRef: name } })
  await createCluster(here, 'files/c', {
    spec: { identityRef: staticReference(name) as never, accountID: '220000000031' },
  })
  await withMachines(here, 'files/c')
  const whole = await contentsOfNamespace(here, 'files')
  const pausedHere = async () => (await here.of(Cluster, 'files').get('c')).spec?.paused

  const closed = folder(t)
  assert.match(
    await moved(['-n', 'files', '--to-directory', closed], one, 'directory'),
    /2 Secrets are there by name only/,
  )
  assert.equal(await pausedHere(), true)
  assert.doesNotMatch(
    textsIn(closed),
    new RegExp(`${Buffer.from(keys.secretAccessKey).toString('base64')}|the key of the cluster`),
  )
  assert.ok(readdirSync(closed).every((file) => (statSync(join(closed, file)).mode & 0o077) === 0))
  // Elsewhere its Secrets are missing; here they are not, and here it goes on.
  const without = await clusterctl(['--from-directory', closed, ...flags], one, two)
  assert.equal(without.code, 1)
  assert.match(without.err, /Secret files\/c-ca was exported without its content[^]*--include-secrets/)
  await moved(['--from-directory', closed], one, one)
  assert.equal(await pausedHere(), undefined)
  const { annotations } = (await here.of(machineTemplates.kind, 'files').get('c-md')).metadata
  assert.equal(annotations?.['move.lanyard.io/moving-to'], undefined)

  const open = folder(t)
  await moved(['-n', 'files', '--to-directory', open, '--include-secrets'], one, 'directory')
  await moved(['--from-directory', open], one, two)
  await stands(there, 'files/c', isReady('220000000031'))
  assert.deepEqual(await contentsOfNamespace(there, 'files'), whole)
  assert.equal((await there.of(Cluster, 'files').get('c')).spec?.paused, undefined)
  // Read a second time it changes nothing; and what was left here goes, although the other hub has acted since.
  await moved(['--from-directory', open], one, two)
  assert.equal(await pausedHere(), true)
  await moved(['-n', 'files'])
  assert.deepEqual(await contentsOfNamespace(here, 'files'), [])
  assert.deepEqual(await contentsOfNamespace(there, 'files'), whole)
})
