import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  controllerIdentity,
  createAwsCluster,
  createKeys,
  hubNamespace,
  isReady,
  namespace,
  roleReference,
  runIdentities,
  serveWebhooks,
  standing,
  stands,
  staticReference,
  trusting,
} from '../../testkit/identity-hub.ts'
import { eventually, startControlPlane, startLocalAws, type ControlPlane, type LocalAws } from '../../testkit/index.ts'
import {
  AWSCluster,
  AWSClusterControllerIdentity,
  AWSClusterRoleIdentity,
  AWSClusterStaticIdentity,
  AWSServiceAccountIdentity,
  crds,
  installCrds,
} from '../api/index.ts'
import {
  ApiError,
  ClusterRole,
  ClusterRoleBinding,
  Namespace,
  RoleBinding,
  Secret,
  ServiceAccount,
  type Client,
} from '../kube/index.ts'
import { clusterRole } from './contract.ts'

let plane: ControlPlane
let local: LocalAws
before(async () => {
  ;[plane, local] = await Promise.all([startControlPlane(), startLocalAws()])
  await installCrds(plane.client(), crds({ conversion: 'none' }))
})
after(() => Promise.all([plane.stop(), local.stop()]))

const victim = '800000000001'
const own = '800000000002'
const region = 'eu-west-1'
const apiGroup = 'rbac.authorization.k8s.io'

/** Makes a cluster, and answers how it stands when the controller has judged it. */
type Attempt = (mallory: Client) => Promise<string | void>

test('R3.62 R3.63 a workload operator tries to act in an account that is not theirs: all ways are refused', async (t) => {
  const hub = await runIdentities(t, plane, local)
  const { client, account, controllerArn, front } = hub
  await serveWebhooks(plane, hub)
  await namespace(client, 'victim', { tier: 'gold' })
  await namespace(client, 'mallory')
  const roleARN = await account(victim).role('prod', trusting(controllerArn))
  const ownARN = await account(own).role('mine', trusting(controllerArn))
  const keys = await account(victim).user('keys')
  await createKeys(client, `${hubNamespace}/victim-keys`, keys)
  const forVictim = { allowedNamespaces: { list: ['victim'] } }
  await client
    .of(AWSClusterControllerIdentity)
    .create({ metadata: { name: 'default' }, spec: { allowedNamespaces: {} } })
  await client
    .of(AWSClusterStaticIdentity)
    .create({ metadata: { name: 'victim-keys' }, spec: { ...forVictim, secretRef: 'victim-keys' } })
  const roles = client.of(AWSClusterRoleIdentity)
  await roles.create({ metadata: { name: 'victim' }, spec: { ...forVictim, roleARN } })
  await roles.create({
    metadata: { name: 'gold' },
    spec: { allowedNamespaces: { selector: { matchLabels: { tier: 'gold' } } }, roleARN },
  })
  await roles.create({
    metadata: { name: 'open' },
    spec: { allowedNamespaces: {}, roleARN, sourceIdentityRef: staticReference('victim-keys') as never },
  })
  await roles.create({
    metadata: { name: 'mine' },
    spec: { allowedNamespaces: { list: ['mallory'] }, roleARN: ownARN },
  })
  await createAwsCluster(client, 'victim/prod', { identity: roleReference('victim') })
  await stands(client, 'victim/prod', isReady(victim))
  // Mallory's rights: her namespace, and a look at what there is.
  const subjects = [{ apiGroup, kind: 'User', name: 'mallory' }]
  const roleRef = (name: string) => ({ apiGroup, kind: 'ClusterRole', name })
  await eventually(async () => (await client.of(ClusterRole).find(clusterRole.viewer)) !== undefined)
  await client
    .of(ClusterRoleBinding)
    .create({ metadata: { name: 'viewer' }, roleRef: roleRef(clusterRole.viewer), subjects })
  await client.of(RoleBinding, 'mallory').create({
    metadata: { namespace: 'mallory', name: 'dev' },
    roleRef: roleRef(clusterRole.workloadOperator),
    subjects,
  })
  const mallory = plane.client({ user: 'mallory' })
  t.after(() => mallory.close())
  const mine = {
    metadata: { namespace: 'mallory', name: 'own' },
    spec: { region, identityRef: roleReference('mine') as never },
  }
  await eventually(() => mallory.of(AWSCluster, 'mallory').create(mine, { dryRun: true }))
  await mallory.of(AWSCluster, 'mallory').create(mine)
  await stands(client, 'mallory/own', isReady(own))

  let serial = 0
  const clustersOf = mallory.of(AWSCluster, 'mallory')
  const cluster = async (spec: object, metadata: object = {}): Promise<string> => {
    const name = `try-${++serial}`
    await clustersOf.create({
      metadata: { namespace: 'mallory', name, ...metadata },
      spec: { region, ...spec },
    })
    return standing(await stands(client, `mallory/${name}`, /\/.* .*\//))
  }
  const accountIdentity = async (name: string, spec: object = {}): Promise<string> => {
    await mallory
      .of(AWSServiceAccountIdentity, 'mallory')
      .create({ metadata: { namespace: 'mallory', name }, spec: { roleARN, ...spec } })
    return cluster({ identityRef: { kind: 'AWSServiceAccountIdentity', name } })
  }
  const victimIdentity = await roles.get('victim')
  const forged = {
    apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta2',
    kind: 'AWSClusterRoleIdentity',
    name: 'victim',
    uid: victimIdentity.metadata.uid!,
  }
  const open = { allowedNamespaces: {} }

  const attempts: Record<string, Attempt> = {
    'name the role of the victim': () => cluster({ identityRef: roleReference('victim') }),
    'name the keys of the victim': () => cluster({ identityRef: staticReference('victim-keys') }),
    'name an open role over the keys of the victim': () => cluster({ identityRef: roleReference('open') }),
    'name a role for namespaces with a label': () => cluster({ identityRef: roleReference('gold') }),
    'label her namespace for it': async () =>
      void (await mallory.of(Namespace).patch('mallory', { merge: { metadata: { labels: { tier: 'gold' } } } })),
    'name the role in an older version': async () => {
      const { v1alpha3 } = AWSCluster.versions
      await mallory.of(v1alpha3, 'mallory').create({
        metadata: { namespace: 'mallory', name: 'old' },
        spec: { region, identityRef: roleReference('victim') as never },
      })
      return standing(await stands(client, 'mallory/old', /\/.* .*\//))
    },
    'switch a cluster that works to the role': async () => {
      await clustersOf.create({
        metadata: { namespace: 'mallory', name: 'switch' },
        spec: { region, identityRef: roleReference('mine') as never },
      })
      await stands(client, 'mallory/switch', isReady(own))
      await clustersOf.patch('switch', { merge: { spec: { identityRef: roleReference('victim') } } })
      return standing(await stands(client, 'mallory/switch', /^False|^Unknown/))
    },
    'write the account of the victim by hand': () =>
      cluster({ identityRef: roleReference('victim'), accountID: victim }),
    'write it for a role of her own': () => cluster({ identityRef: roleReference('mine'), accountID: victim }),
    'forge an owner reference to the role': () =>
      cluster({ identityRef: roleReference('victim') }, { ownerReferences: [forged] }),
    'name a path': () => cluster({ identityRef: roleReference('mine/../victim') }),
    'name a Secret': () => cluster({ identityRef: { kind: 'Secret', name: 'victim-keys' } }),
    'name a region that is her own host': () =>
      cluster({ identityRef: roleReference('mine'), region: 'x.evil.example/' }),
    'make a role identity': async () =>
      void (await mallory.of(AWSClusterRoleIdentity).create({ metadata: { name: 'm' }, spec: { ...open, roleARN } })),
    'make a static identity': async () =>
      void (await mallory
        .of(AWSClusterStaticIdentity)
        .create({ metadata: { name: 'm' }, spec: { ...open, secretRef: 'victim-keys' } })),
    'make the controller identity': async () =>
      void (await mallory.of(AWSClusterControllerIdentity).create({ metadata: { name: 'default' }, spec: open })),
    'open the role for all': async () =>
      void (await mallory.of(AWSClusterRoleIdentity).patch('victim', { merge: { spec: open } })),
    'point her role at the victim': async () =>
      void (await mallory.of(AWSClusterRoleIdentity).patch('mine', { merge: { spec: { roleARN } } })),
    'delete the role of the victim': async () => void (await mallory.of(AWSClusterRoleIdentity).delete('victim')),
    'let it be deleted': async () =>
      void (await mallory
        .of(AWSClusterRoleIdentity)
        .patch('victim', { merge: { metadata: { annotations: { 'identities.lanyard.io/delete-in-use': 'true' } } } })),
    'a service account of hers for the role': () => accountIdentity('mine'),
    'a token for Kubernetes, sent to AWS': () =>
      accountIdentity('k8s', { audiences: ['https://kubernetes.default.svc'] }),
    'a token for nobody in particular': () => accountIdentity('none', { audiences: [] }),
    'a service account in the namespace of the victim': async () =>
      void (await mallory
        .of(AWSServiceAccountIdentity, 'victim')
        .create({ metadata: { namespace: 'victim', name: 'm' }, spec: { roleARN } })),
    'one in the namespace of the controller': async () =>
      void (await mallory
        .of(AWSServiceAccountIdentity, hubNamespace)
        .create({ metadata: { namespace: hubNamespace, name: 'm' }, spec: { roleARN } })),
    'a cluster in the namespace of the victim': async () =>
      void (await mallory
        .of(AWSCluster, 'victim')
        .create({ metadata: { namespace: 'victim', name: 'm' }, spec: { region } })),
    'change the cluster of the victim': async () =>
      void (await mallory.of(AWSCluster, 'victim').patch('prod', { merge: { spec: { region: 'us-east-1' } } })),
    'read the keys': async () => void (await mallory.of(Secret, hubNamespace).get('victim-keys')),
    'put a Secret where plain names are looked for': async () =>
      void (await mallory.of(Secret, hubNamespace).create({ metadata: { namespace: hubNamespace, name: 'm' } })),
    'a token of the controller': async () =>
      void (await mallory
        .of(ServiceAccount, hubNamespace)
        .subresource('default', 'token', { method: 'POST', body: { spec: { audiences: ['sts.amazonaws.com'] } } })),
    'say in the status that all is well': async () =>
      void (await clustersOf.patch('own', { merge: { status: { conditions: [] } } }, { subresource: 'status' })),
  }
  const outcomes: Record<string, string> = {}
  for (const [title, attempt] of Object.entries(attempts)) {
    const outcome = await attempt(mallory).catch((error: unknown) => {
      if (!(error instanceof ApiError)) throw error
      return `API server: ${error.reason}`
    })
    outcomes[title] = outcome ?? 'ALLOWED'
  }
  const width = Math.max(...Object.keys(outcomes).map((title) => title.length))
  for (const [title, outcome] of Object.entries(outcomes)) t.diagnostic(`${title.padEnd(width)}  ${outcome}`)

  assert.ok(Object.keys(attempts).length >= 20)
  for (const [title, outcome] of Object.entries(outcomes)) {
    const isRefused =
      /^API server: (Forbidden|Invalid)$/.test(outcome) ||
      /^(False|Unknown)\//.test(outcome) ||
      outcome.endsWith(' False/PrincipalCredentialRetrievalFailed -')
    assert.ok(isRefused, `${title}: ${outcome}`)
  }
  // AWS itself has seen one session in the account of the victim: its own.
  assert.equal(front.count('AssumeRole', roleARN), 1)
  assert.equal(front.calls.filter(({ accessKeyId }) => accessKeyId === keys.accessKeyId).length, 0)
  const inside = (await client.of(AWSCluster, 'mallory').list()).items.filter(
    (one) => standing(one) === isReady(victim),
  )
  assert.deepEqual(inside, [])
  await stands(client, 'victim/prod', isReady(victim))
  assert.deepEqual((await client.of(AWSClusterControllerIdentity).get(controllerIdentity.name)).spec, open)
})
