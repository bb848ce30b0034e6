import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { allowing } from '../../testkit/aws-account.ts'
import {
  controllerIdentity,
  createAwsCluster,
  createKeys,
  hubNamespace,
  isReady,
  managementAccount,
  messageOf,
  roleReference,
  runIdentities,
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
import { awsClient } from '../aws/index.ts'
import { Event, ServiceAccount } from '../kube/index.ts'

let plane: ControlPlane
let local: LocalAws
before(async () => {
  ;[plane, local] = await Promise.all([startControlPlane(), startLocalAws()])
  await installCrds(plane.client(), crds({ conversion: 'none' }))
})
after(() => Promise.all([plane.stop(), local.stop()]))

const all = { allowedNamespaces: {} }

test('R3.1 R3.28 R3.50 story 1: a cluster in a workload account, by a role that trusts the management account', async (t) => {
  const { client, account, controllerArn, front, hub } = await runIdentities(t, plane, local)
  const roleARN = await account('222222222222').role('ClusterAPI-Participant', trusting(controllerArn))
  await client.of(AWSClusterControllerIdentity).create({ metadata: { name: 'default' }, spec: all })
  await client.of(AWSClusterRoleIdentity).create({
    metadata: { name: 'participant' },
    spec: { allowedNamespaces: { list: ['alex'] }, roleARN, sourceIdentityRef: controllerIdentity as never },
  })
  await createAwsCluster(client, 'alex/prod', { identity: roleReference('participant') })

  const cluster = await stands(client, 'alex/prod', isReady('222222222222'))
  assert.match(messageOf(cluster, 'PrincipalCredentialRetrieved'), /account 222222222222 by .*participant ← .*default/)
  // The identity is held while it is used, and owns the cluster.
  const owned = await eventually(async () => {
    const { metadata } = await client.of(AWSCluster, 'alex').get('prod')
    const identity = await client.of(AWSClusterRoleIdentity).get('participant')
    assert.deepEqual(
      metadata.ownerReferences?.map(({ kind, uid }) => [kind, uid]),
      [['AWSClusterRoleIdentity', identity.metadata.uid]],
    )
    return identity
  })
  assert.deepEqual(owned.metadata.finalizers, ['in-use.infrastructure.cluster.x-k8s.io'])
  const events = await eventually(async () => {
    const { items } = await client.of(Event, 'alex').list()
    const reasons = items.map(({ reason }) => reason).toSorted()
    assert.ok(reasons.includes('PrincipalCredentialRetrieved'), String(reasons))
    return items
  })
  assert.ok(events.every(({ type }) => type === 'Normal'))
  // One AssumeRole served pre-flight, account and everything after; the controller's own key was never asked about.
  assert.equal(front.count('AssumeRole', roleARN), 1)
  assert.equal(front.count('GetCallerIdentity'), 0)
  // Whoever builds the cluster gets the same credentials, and they are those of the workload account.
  const recipe = hub.credentials.inspect().find(({ accountId }) => accountId === '222222222222')!.recipe
  const { account: reached } = await hub.credentials.caller(recipe, 'eu-west-1')
  assert.equal(reached, '222222222222')
})

test('R3.2 R3.10 R3.22 R3.64 story 2: no identity is named, the controller acts itself, and no role is assumed', async (t) => {
  const { client, front } = await runIdentities(t, plane, local)
  await createAwsCluster(client, 'dascha/dev')

  const cluster = await stands(client, 'dascha/dev', isReady(managementAccount))
  assert.deepEqual(cluster.spec?.identityRef, controllerIdentity)
  const identity = await client.of(AWSClusterControllerIdentity).get('default')
  assert.deepEqual(identity.spec, { allowedNamespaces: {} })
  assert.equal(front.count('AssumeRole'), 0)
  assert.equal(front.count('GetCallerIdentity'), 1)
})

test('R3.3 R3.31 story 3: a provider with external IDs; the wrong or missing one is denied by AWS itself', async (t) => {
  const { client, account, controllerArn } = await runIdentities(t, plane, local)
  const roles = {
    acme: await account('333333333333').role('k8s', trusting(controllerArn, 'acme-7a5b')),
    emca: await account('444444444444').role('k8s', trusting(controllerArn, 'emca-9c1d')),
  }
  const role = (name: string, roleARN: string, externalID?: string) =>
    client.of(AWSClusterRoleIdentity).create({
      metadata: { name },
      spec: {
        allowedNamespaces: { list: [name] },
        roleARN,
        sourceIdentityRef: controllerIdentity as never,
        ...(externalID ? { externalID } : {}),
      },
    })
  await role('acme', roles.acme, 'acme-7a5b')
  await role('emca', roles.emca, 'emca-9c1d')
  await role('wrong', roles.acme, 'emca-9c1d')
  await role('none', roles.acme)
  for (const name of ['acme', 'emca', 'wrong', 'none'])
    await createAwsCluster(client, `${name}/${name}`, { identity: roleReference(name) })
  // Whoever was allowed only for one organisation cannot use the identity of the other.
  await createAwsCluster(client, 'acme/spy', { identity: roleReference('emca') })

  await stands(client, 'acme/acme', isReady('333333333333'))
  await stands(client, 'emca/emca', isReady('444444444444'))
  for (const name of ['wrong', 'none']) {
    const denied = await stands(
      client,
      `${name}/${name}`,
      'True/PrincipalUsageAllowed False/PrincipalCredentialRetrievalFailed -',
    )
    assert.match(messageOf(denied, 'PrincipalCredentialRetrieved'), /role\/k8s.*[Tt]rust/s)
    assert.doesNotMatch(JSON.stringify(denied.status), /acme-7a5b/, 'the external ID of the other is nowhere')
  }
  const spy = await stands(
    client,
    'acme/spy',
    'False/PrincipalUsageUnauthorized False/PrincipalCredentialRetrievalFailed -',
  )
  assert.match(messageOf(spy, 'PrincipalUsageAllowed'), /add acme to spec.allowedNamespaces/)
})

test('R3.25 R3.26 R3.42 static keys: a missing secret and a missing key are named, and mended at once', async (t) => {
  const { client, account } = await runIdentities(t, plane, local)
  const keys = await account('555555555555').user('static')
  await client
    .of(AWSClusterStaticIdentity)
    .create({ metadata: { name: 'keys' }, spec: { ...all, secretRef: 'static-keys' } })
  await createAwsCluster(client, 'stat/one', { identity: staticReference('keys') })

  const missing = await stands(
    client,
    'stat/one',
    'True/PrincipalUsageAllowed False/PrincipalCredentialRetrievalFailed -',
  )
  assert.match(
    messageOf(missing, 'PrincipalCredentialRetrieved'),
    new RegExp(`secret ${hubNamespace}/static-keys does not exist`),
  )
  await createKeys(client, `${hubNamespace}/static-keys`, { ...keys, secretAccessKey: '' })
  await eventually(async () => {
    const cluster = await client.of(AWSCluster, 'stat').get('one')
    assert.match(messageOf(cluster, 'PrincipalCredentialRetrieved'), /data.SecretAccessKey is missing or empty/)
    assert.doesNotMatch(JSON.stringify(cluster), new RegExp(keys.accessKeyId))
  })
  await createKeys(client, `${hubNamespace}/static-keys`, keys)
  await stands(client, 'stat/one', isReady('555555555555'))
})

test('R3.37 R3.38 a service account of the namespace: made, asked for a token, and AWS trusts that token alone', async (t) => {
  const { client, account } = await runIdentities(t, plane, local)
  const owner = account('666666666666')
  const issuer = 'https://kubernetes.default.svc.cluster.local'
  const provider = `arn:aws:iam::666666666666:oidc-provider/${new URL(issuer).host}`
  await owner.iam('CreateOpenIDConnectProvider', {
    Url: issuer,
    ClientIDList: ['sts.amazonaws.com'],
    ThumbprintList: ['a'.repeat(40)],
  })
  const roleARN = await owner.role(
    'tenant',
    allowing({
      Principal: { Federated: provider },
      Action: 'sts:AssumeRoleWithWebIdentity',
      Condition: { StringEquals: { [`${new URL(issuer).host}:sub`]: 'system:serviceaccount:tenant:builder' } },
    }),
  )
  await createAwsCluster(client, 'tenant/own', { identity: { kind: 'AWSServiceAccountIdentity', name: 'builder' } })
  await createAwsCluster(client, 'thief/own', { identity: { kind: 'AWSServiceAccountIdentity', name: 'builder' } })
  await stands(client, 'tenant/own', 'Unknown/IdentityNotFound False/PrincipalCredentialRetrievalFailed -')
  for (const namespace of ['tenant', 'thief'])
    await client
      .of(AWSServiceAccountIdentity, namespace)
      .create({ metadata: { namespace, name: 'builder' }, spec: { roleARN } })

  await stands(client, 'tenant/own', isReady('666666666666'))
  assert.ok(await client.of(ServiceAccount, 'tenant').find('builder'))
  // The same name in another namespace is somebody else to AWS.
  await stands(client, 'thief/own', 'True/PrincipalUsageAllowed False/PrincipalCredentialRetrievalFailed -')
})

test('R3.40 the client of one account is never that of another', async (t) => {
  const { client, account, controllerArn, hub, front } = await runIdentities(t, plane, local)
  await client.of(AWSClusterControllerIdentity).create({ metadata: { name: 'default' }, spec: all })
  const ids = ['700000000001', '700000000002', '700000000003']
  for (const id of ids) {
    const roleARN = await account(id).role('own', trusting(controllerArn))
    await client.of(AWSClusterRoleIdentity).create({ metadata: { name: `r${id}` }, spec: { ...all, roleARN } })
    await createAwsCluster(client, `shared/c${id}`, { identity: roleReference(`r${id}`) })
  }
  const through = awsClient({ endpoints: { all: front.endpoint } })
  t.after(() => through.close())
  for (const id of ids) {
    await stands(client, `shared/c${id}`, isReady(id))
    const { recipe } = hub.credentials.inspect().find(({ accountId }) => accountId === id)!
    const { account: reached } = await hub.credentials.caller(recipe, 'eu-west-1')
    assert.equal(reached, id)
  }
})
