import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import {
  controllerIdentity,
  createAwsCluster,
  createKeys,
  hubNamespace,
  isReady,
  managementAccount,
  namespace,
  roleReference,
  runIdentities,
  serveWebhooks,
  stands,
  staticReference,
  type IdentityHub,
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
  isForbidden,
  Secret,
  type CustomResourceDefinition,
  type KubeObject,
  type Resource,
} from '../kube/index.ts'

let plane: ControlPlane
let local: LocalAws
before(async () => {
  ;[plane, local] = await Promise.all([startControlPlane({ controllerManager: false }), startLocalAws()])
  // Without the rules of the schema, as on a management cluster whose CRDs are of another provider.
  await installCrds(plane.client(), crds({ conversion: 'none' }).map(withoutRules))
})
after(() => Promise.all([plane.stop(), local.stop()]))

const withoutRules = (crd: CustomResourceDefinition): CustomResourceDefinition =>
  JSON.parse(
    JSON.stringify(crd, (key, value: unknown) => (key === 'x-kubernetes-validations' ? undefined : value)),
  ) as CustomResourceDefinition

const started = async (t: TestContext): Promise<IdentityHub> => {
  const hub = await runIdentities(t, plane, local)
  await namespace(hub.client, 'ns')
  await serveWebhooks(plane, hub)
  return hub
}

const all = { allowedNamespaces: {} }
const roleARN = 'arn:aws:iam::111122223333:role/capa'
const role = (more: object = {}) => ({ spec: { ...all, roleARN, ...more } })

/** What is created, and the words of the refusal: the field first, then the fix. */
const refusals: [kind: Resource<KubeObject>, object: object, words: RegExp][] = [
  [
    AWSClusterControllerIdentity,
    { metadata: { name: 'mine' }, spec: all },
    /metadata.name: there is one.*its name is default/,
  ],
  [
    AWSClusterRoleIdentity,
    role({ allowedNamespaces: { selector: {} } }),
    /allowedNamespaces.selector: an empty selector is ambiguous: write allowedNamespaces: {} for all.*list: \[\] for none/,
  ],
  [AWSClusterRoleIdentity, role({ allowedNamespaces: { selector: { matchLabels: {} } } }), /ambiguous/],
  [
    AWSClusterStaticIdentity,
    { spec: { secretRef: 'x', allowedNamespaces: { list: ['Team_A'] } } },
    /list\[0\]: "Team_A" is no namespace's name/,
  ],
  [
    AWSClusterRoleIdentity,
    role({ allowedNamespaces: { selector: { matchLabels: { 'a b': 'c' } } } }),
    /selector.matchLabels: "a b" is no label key/,
  ],
  [
    AWSClusterRoleIdentity,
    role({ allowedNamespaces: { selector: { matchExpressions: [{ key: 'a', operator: 'In' }] } } }),
    /matchExpressions\[0\].values: In needs values/,
  ],
  [
    AWSClusterRoleIdentity,
    role({ allowedNamespaces: { selector: { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['x'] }] } } }),
    /Exists takes no values/,
  ],
  [AWSClusterRoleIdentity, role({ roleARN: 'arn:aws:iam::111122223333:user/capa' }), /roleARN/],
  [AWSClusterRoleIdentity, role({ sessionName: 'a b' }), /sessionName/],
  [AWSClusterRoleIdentity, role({ externalID: 'x' }), /externalID/],
  [AWSClusterRoleIdentity, role({ durationSeconds: 60 }), /durationSeconds/],
  [AWSClusterRoleIdentity, role({ inlinePolicy: '{"Version": }' }), /spec.inlinePolicy: is not JSON/],
  [AWSClusterRoleIdentity, role({ inlinePolicy: '[]' }), /spec.inlinePolicy: is not a policy/],
  [AWSClusterRoleIdentity, role({ inlinePolicy: '{"Statement":[]}' }), /has no "Version": write "2012-10-17"/],
  [
    AWSClusterRoleIdentity,
    role({ inlinePolicy: '{"Version":"2012-10-17","Statement":[{"Action":"*"}]}' }),
    /Statement 0 has no "Effect"/,
  ],
  [AWSClusterRoleIdentity, role({ inlinePolicy: `{"Version":"2012-10-17","Id":"${'x'.repeat(2048)}"}` }), /2048/],
  [
    AWSClusterRoleIdentity,
    role({ policyARNs: ['a name'] }),
    /policyARNs\[0\]: "a name" is neither an ARN nor the name/,
  ],
  [
    AWSClusterRoleIdentity,
    role({ policyARNs: ['arn:aws:iam::999988887777:policy/x'] }),
    /of account 999988887777, and the role of 111122223333/,
  ],
  [AWSClusterRoleIdentity, role({ policyARNs: ['arn:aws-cn:iam::111122223333:policy/x'] }), /of partition aws-cn/],
  [AWSClusterRoleIdentity, role({ policyARNs: ['arn:aws:iam::111122223333:role/x'] }), /is not the ARN of a policy/],
  [AWSClusterRoleIdentity, role({ tags: { 'a#b': 'c' } }), /tags\[a#b\]: a tag key/],
  [AWSClusterRoleIdentity, role({ tags: { a: 'x;y' } }), /a tag value/],
  [AWSClusterRoleIdentity, role({ tags: { Team: 'a', team: 'b' } }), /Team and team are one key to STS/],
  [
    AWSClusterRoleIdentity,
    role({ tags: { a: 'b' }, transitiveTags: ['c'] }),
    /transitiveTags\[0\]: c is none of spec.tags/,
  ],
  [
    AWSClusterRoleIdentity,
    role({ sourceIdentityRef: roleReference('x') }),
    /the chain comes back to where it was: AWSClusterRoleIdentity x ← AWSClusterRoleIdentity x/,
  ],
  [
    AWSClusterRoleIdentity,
    role({ sourceIdentityRef: { kind: 'AWSClusterControllerIdentity', name: 'other' } }),
    /sourceIdentityRef.name: the only AWSClusterControllerIdentity is default/,
  ],
  [
    AWSClusterRoleIdentity,
    role({ sourceIdentityRef: { kind: 'AWSServiceAccountIdentity', name: 'x' } }),
    /sourceIdentityRef.kind/,
  ],
  [
    AWSServiceAccountIdentity,
    { spec: { roleARN, audiences: [] } },
    /audiences: is empty, which asks for a token for Kubernetes itself/,
  ],
  [
    AWSServiceAccountIdentity,
    { spec: { roleARN, audiences: ['https://kubernetes.default.svc.cluster.local'] } },
    /good for the Kubernetes API, and must not be sent to AWS/,
  ],
  [
    AWSServiceAccountIdentity,
    { spec: { roleARN, tags: { a: 'b' } } },
    /spec.tags: AWS takes the tags of such a session from the token/,
  ],
  [
    AWSServiceAccountIdentity,
    { metadata: { namespace: hubNamespace }, spec: { roleARN } },
    /metadata.namespace: lanyard-hub is the namespace of the controller/,
  ],
  [AWSCluster, { spec: { region: 'sts.evil.example' } }, /spec.region: .* is not a region/],
  [AWSCluster, { spec: { identityRef: { kind: 'Secret', name: 'x' } } }, /identityRef.kind/],
  [
    Secret,
    { type: 'aws-credentials.infrastructure.cluster.x-k8s.io/v1alpha3', stringData: { AccessKeyID: 'a' } },
    /data.SecretAccessKey: is missing or empty/,
  ],
  [
    Secret,
    {
      type: 'aws-credentials.infrastructure.cluster.x-k8s.io/v9',
      stringData: { AccessKeyID: 'a', SecretAccessKey: 'b' },
    },
    /version "v9".*use aws-credentials.*v1alpha3, or Opaque/,
  ],
]

/** What is admitted. */
const admitted: [kind: Resource<KubeObject>, object: object][] = [
  [AWSClusterControllerIdentity, { metadata: { name: 'default' }, spec: all }],
  [AWSClusterRoleIdentity, role({ allowedNamespaces: { list: null, selector: {} } })],
  // The example of the specification, as it is meant.
  [
    AWSClusterRoleIdentity,
    role({
      allowedNamespaces: { list: ['test'] },
      roleARN: 'arn:aws:iam::123456789:role/CAPARole',
      sessionName: 'cluster-spinner.acme.com',
      externalID: '7a5b816a-7743-4377-a382-2d695bf1f172',
      policyARNs: ['RestrictedCAPAPolicy'],
      inlinePolicy: '{"Version": "2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}',
      tags: { company: 'acme industries', product: 'cluster-spinner' },
      transitiveTags: ['company', 'product'],
      sourceIdentityRef: staticReference('test-account-creds'),
    }),
  ],
  [AWSServiceAccountIdentity, { spec: { roleARN, audiences: ['sts.amazonaws.com'] } }],
  [
    Secret,
    {
      type: 'aws-credentials.infrastructure.cluster.x-k8s.io/v1alpha3',
      stringData: { accessKeyID: 'a', secretAccessKey: 'b' },
    },
  ],
  [Secret, { stringData: { anything: 'else' } }],
]

test(`R3.16 R3.19 R3.29 R3.35 R3.60 R3.61 R3.65 admission: ${refusals.length} things are refused, with the field and the fix`, async (t) => {
  const { client } = await started(t)
  const send = (kind: Resource<KubeObject>, object: object) => {
    const { metadata, ...rest } = object as { metadata?: object }
    const at = kind.namespaced ? { namespace: 'ns' } : {}
    const sent = { metadata: { name: 'x', ...at, ...metadata }, ...rest }
    return client.of(kind, sent.metadata.namespace).create(sent, { dryRun: true })
  }
  for (const [kind, object, words] of refusals)
    await t.test(`${kind.kind} ${words.source.slice(0, 60)}`, () =>
      assert.rejects(send(kind, object), (error: unknown) => {
        assert.ok(error instanceof ApiError, String(error))
        assert.equal(error.status, 422, error.message)
        assert.match(error.message, words)
        return true
      }),
    )
  for (const [kind, object] of admitted) await send(kind, object)
})

test('R3.9 R3.7 an identityRef is defaulted, can be changed, and cannot be removed', async (t) => {
  const { client } = await started(t)
  const made = await createAwsCluster(client, 'ns/defaulted')
  assert.deepEqual(made.spec?.identityRef, controllerIdentity)
  await stands(client, 'ns/defaulted', isReady(managementAccount))
  const clusters = client.of(AWSCluster, 'ns')
  const removed = clusters.patch('defaulted', { json: [{ op: 'remove', path: '/spec/identityRef' }] })
  await assert.rejects(removed, /spec.identityRef: can be changed but not removed/)
  await assert.rejects(
    clusters.patch('defaulted', { merge: { spec: { accountID: '999999999999' } } }),
    /spec.accountID: a cluster stays in its account/,
  )
  await clusters.patch('defaulted', { merge: { spec: { identityRef: roleReference('later') } } })
})

test('R3.21 R3.24 R3.35 what must not change cannot: the controller identity, the secret of a static one, and chains into loops', async (t) => {
  const { client, hub } = await started(t)
  await client.of(AWSClusterControllerIdentity).create({ metadata: { name: 'default' }, spec: all })
  await assert.rejects(
    client
      .of(AWSClusterControllerIdentity)
      .patch('default', { merge: { spec: { allowedNamespaces: { list: ['ns'] } } } }),
    /spec: cannot be changed; delete the identity and create it anew/,
  )
  await client.of(AWSClusterControllerIdentity).patch('default', { merge: { metadata: { labels: { still: 'free' } } } })

  await createKeys(client, `${hubNamespace}/bad`, { accessKeyId: 'a', secretAccessKey: '' })
  const statics = client.of(AWSClusterStaticIdentity)
  await assert.rejects(
    statics.create({ metadata: { name: 'bad' }, spec: { ...all, secretRef: 'bad' } }),
    /spec.secretRef: secret lanyard-hub\/bad: data.SecretAccessKey is missing/,
  )
  await statics.create({ metadata: { name: 'fixed' }, spec: { ...all, secretRef: 'later' } })
  await assert.rejects(
    statics.patch('fixed', { merge: { spec: { secretRef: 'another' } } }),
    /spec.secretRef: cannot be changed/,
  )
  // The same one, spelled out.
  await statics.patch('fixed', { merge: { spec: { secretRef: { namespace: hubNamespace, name: 'later' } } } })

  const roles = client.of(AWSClusterRoleIdentity)
  await roles.create({
    metadata: { name: 'a' },
    ...role({ sourceIdentityRef: roleReference('b') }),
  })
  await eventually(() => hub.records.roles.get('a') !== undefined)
  const b = { metadata: { name: 'b' }, ...role({ sourceIdentityRef: roleReference('a') }) } as AWSClusterRoleIdentity
  await assert.rejects(
    roles.create(b),
    /AWSClusterRoleIdentity b ← AWSClusterRoleIdentity a ← AWSClusterRoleIdentity b/,
  )
})

test('R3.51 an identity in use is not deleted: the clusters are named, those over a chain too, and an annotation overrides', async (t) => {
  const { client } = await started(t)
  await client.of(AWSClusterControllerIdentity).create({ metadata: { name: 'default' }, spec: all })
  await createAwsCluster(client, 'ns/direct')
  await stands(client, 'ns/direct', isReady(managementAccount))
  const controllers = client.of(AWSClusterControllerIdentity)
  await assert.rejects(controllers.delete('default'), (error: unknown) => {
    assert.ok(isForbidden(error))
    assert.match(
      error.message,
      /AWSClusterControllerIdentity default is used by AWSClusters ns\/direct.*annotation identities.lanyard.io\/delete-in-use=true/,
    )
    return true
  })
  await controllers.patch('default', {
    merge: { metadata: { annotations: { 'identities.lanyard.io/delete-in-use': 'true' } } },
  })
  await controllers.delete('default')
  await eventually(async () => (await controllers.find('default')) === undefined)
})
