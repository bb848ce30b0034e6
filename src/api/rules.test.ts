import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type ControlPlane, startControlPlane } from '../../testkit/index.ts'
import {
  ApiError,
  CustomResourceDefinition,
  KindMapper,
  type Client,
  type KubeObject,
  type Resource,
  type Unstructured,
} from '../kube/index.ts'
import {
  AWSCluster,
  AWSClusterControllerIdentity,
  AWSClusterRoleIdentity,
  AWSClusterStaticIdentity,
  AWSServiceAccountIdentity,
  ClusterManager,
  ClusterPermission,
  crds,
  installCrds,
  Klusterlet,
  ManagedCluster,
  ManagedClusterAddOn,
  ManagedClusterSetBinding,
  ManagedServiceAccount,
} from './index.ts'

let plane: ControlPlane
let client: Client

before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  client = plane.client()
  await installCrds(client, crds({ conversion: 'none' }))
})

after(() => plane?.stop())

type Fields = Record<string, unknown>

const build = (of: Resource<KubeObject>, spec: unknown, name = 'x'): Unstructured => ({
  metadata: { name, ...(of.namespaced && { namespace: 'default' }) },
  spec,
})

/** The spec as it would be stored. */
const accepted = async (of: Resource<KubeObject>, spec: unknown, name?: string): Promise<Fields> => {
  const created = await client.of(of as Resource).create(build(of, spec, name), { dryRun: true })
  return created['spec'] as Fields
}

const messageOf = (error: unknown): string => {
  if (error instanceof ApiError) return error.serverMessage
  throw error
}

const refused = async (of: Resource<KubeObject>, spec: unknown, why: RegExp, name?: string): Promise<void> => {
  const answer = accepted(of, spec, name)
  assert.match(await answer.then((stored) => assert.fail(`accepted: ${JSON.stringify(stored)}`), messageOf), why)
}

/** Creates one, and gives a function that tries to replace its spec; it returns why not. */
const changing = async (of: Resource<KubeObject>, spec: unknown, name?: string) => {
  const objects = client.of(of as Resource, of.namespaced ? 'default' : undefined)
  const created = await objects.create(build(of, spec, name))
  return (changed: unknown): Promise<string> =>
    objects.update({ ...created, spec: changed }, { dryRun: true }).then(() => '', messageOf)
}

const roleARN = 'arn:aws:iam::123456789012:role/capa'
const arn = (cluster: string) => `arn:aws:eks:us-west-2:123456789012:cluster/${cluster}`

test('R1.16 the name of a managed cluster is a DNS label', async () => {
  await accepted(ManagedCluster, {}, 'a'.repeat(63))
  for (const name of ['a.b', 'a'.repeat(64)]) await refused(ManagedCluster, {}, /name of its namespace/, name)
  assert.deepEqual(await accepted(ManagedCluster, {}), { hubAcceptsClient: false, leaseDurationSeconds: 60 })
})

test('R0.34 a ManagedClusterSetBinding has the name of its set', async () => {
  await accepted(ManagedClusterSetBinding, { clusterSet: 'x' })
  await refused(ManagedClusterSetBinding, { clusterSet: 'y' }, /spec.clusterSet must equal metadata.name/)
})

test('R2.6 the add-on driver of a Klusterlet is absent, csr or token', async () => {
  const klusterlet = (driver: Fields) => ({ registrationConfiguration: { addOnKubeClientRegistrationDriver: driver } })
  for (const driver of [{}, { authType: 'csr' }, { authType: 'token', token: { expirationSeconds: 0 } }])
    await accepted(Klusterlet, klusterlet(driver))
  await refused(Klusterlet, klusterlet({ authType: 'grpc' }), /authType: Unsupported value.*"csr", "token"/)
})

test('R1.3 the drivers of Klusterlet and ClusterManager are csr, awsirsa and grpc, and awsirsa needs its ARNs', async () => {
  const agent = (registrationDriver: Fields) => ({ registrationConfiguration: { registrationDriver } })
  await accepted(Klusterlet, agent({ authType: 'grpc' }))
  await accepted(
    Klusterlet,
    agent({ authType: 'awsirsa', awsIrsa: { hubClusterArn: arn('hub'), managedClusterArn: arn('c_1') } }),
  )
  await refused(Klusterlet, agent({ authType: 'awsirsa' }), /needs awsIrsa with hubClusterArn and managedClusterArn/)
  await refused(Klusterlet, agent({ authType: 'aws-irsa' }), /"csr", "awsirsa", "grpc"/)
  await refused(
    Klusterlet,
    agent({ authType: 'awsirsa', awsIrsa: { hubClusterArn: 'hub', managedClusterArn: arn('c1') } }),
    /awsIrsa.hubClusterArn/,
  )

  const hub = (...registrationDrivers: Fields[]) => ({ registrationConfiguration: { registrationDrivers } })
  await accepted(
    ClusterManager,
    hub({ authType: 'csr' }, { authType: 'awsirsa', awsirsa: { hubClusterArn: arn('hub') } }),
  )
  await refused(ClusterManager, hub({ authType: 'awsirsa' }), /needs awsirsa.hubClusterArn/)
  await refused(ClusterManager, hub({ authType: 'csr' }, { authType: 'csr' }), /Duplicate value/)
})

test('R2.12 a registration has the fields of its type, and its driver is absent, csr or token', async () => {
  const addOns = client.of(ManagedClusterAddOn, 'default')
  const addOn = await addOns.create({ metadata: { name: 'a', namespace: 'default' } })
  const report = (...registrations: unknown[]) =>
    addOns.updateStatus({ ...addOn, status: { registrations } } as never, { dryRun: true }).then(() => '', messageOf)
  const customSigner = { signerName: 'example.com/signer' }
  const kubeClients = [
    { type: 'kubeClient' },
    ...['csr', 'token'].map((driver) => ({ type: 'kubeClient', kubeClient: { driver } })),
  ]
  assert.equal(await report(...kubeClients, { type: 'customSigner', customSigner }), '')
  assert.match(await report({ type: 'kubeClient', kubeClient: { driver: 'grpc' } }), /driver: Unsupported value/)
  assert.match(await report({ type: 'kubeClient', customSigner }), /type kubeClient takes only kubeClient/)
  assert.match(await report({ type: 'customSigner' }), /type customSigner needs customSigner/)
})

test('R3.4 AWS kinds are the same in the versions of the examples and of the field', async () => {
  const spec = { region: 'eu-west-1', sshKeyName: null, network: { vpc: { id: 'vpc-1' } }, additionalTags: { a: 'b' } }
  const { v1alpha3, v1beta2 } = AWSCluster.versions
  await client.of(v1alpha3 as Resource).create(build(v1alpha3, spec, 'versions'))
  const stored = await client.of(v1beta2, 'default').get('versions')
  assert.equal(stored.spec?.sshKeyName, null)
  assert.deepEqual(stored.spec?.additionalTags, { a: 'b' })
  assert.equal(stored.spec?.network?.vpc?.availabilityZoneUsageLimit, 3)
})

test('R3.5 an identityRef is absent or one of the four kinds, and once set it is not removed', async () => {
  const spec = { region: 'eu-west-1' }
  await accepted(AWSCluster, spec)
  for (const of of [
    AWSClusterControllerIdentity,
    AWSClusterRoleIdentity,
    AWSClusterStaticIdentity,
    AWSServiceAccountIdentity,
  ])
    await accepted(AWSCluster, { ...spec, identityRef: { kind: of.kind, name: 'x' } })
  await refused(
    AWSCluster,
    { ...spec, identityRef: { kind: 'Secret', name: 'x' } },
    /identityRef.kind: Unsupported value/,
  )

  const change = await changing(AWSCluster, { ...spec, identityRef: { kind: 'AWSClusterRoleIdentity', name: 'x' } })
  assert.equal(await change({ ...spec, identityRef: { kind: 'AWSClusterRoleIdentity', name: 'y' } }), '')
  assert.match(await change(spec), /spec.identityRef:.* not removed/)
})

test('R3.8 region and account of a cluster stay, and an account has twelve digits', async () => {
  await refused(AWSCluster, { accountID: '123' }, /spec.accountID/)
  const change = await changing(AWSCluster, { region: 'eu-west-1' }, 'fixed')
  assert.equal(await change({ region: 'eu-west-1', accountID: '123456789012' }), '')
  assert.match(await change({ region: 'eu-west-2' }), /stays in its region: region cannot be changed once set/)
  assert.match(await change({}), /region cannot be changed once set/)
})

test('R3.16 an empty selector is refused with both clear spellings; forms that Go programs store pass unchanged', async () => {
  const identity = (allowedNamespaces: unknown) => ({ roleARN, allowedNamespaces })
  for (const form of [
    null,
    {},
    { list: null },
    { list: null, selector: {} },
    { list: [] },
    { list: ['a'], selector: {} },
  ])
    assert.deepEqual(await accepted(AWSClusterRoleIdentity, identity(form)), identity(form))
  for (const selector of [{}, { matchLabels: {} }, { matchExpressions: [] }, { matchLabels: {}, matchExpressions: [] }])
    await refused(
      AWSClusterRoleIdentity,
      identity({ selector }),
      /selector.*allowedNamespaces: {} for all.*list: \[\] for none/,
    )
})

test('R3.19 R3.21 the controller identity is named default, and its spec cannot be changed', async () => {
  await refused(AWSClusterControllerIdentity, {}, /its name is default/)
  const change = await changing(AWSClusterControllerIdentity, { allowedNamespaces: {} }, 'default')
  assert.equal(await change({ allowedNamespaces: {} }), '')
  for (const other of [undefined, {}, { allowedNamespaces: null }, { allowedNamespaces: { list: ['a'] } }])
    assert.match(await change(other), /spec cannot be changed/)
})

test('R3.24 secretRef is a namespace and a name, or a name', async () => {
  for (const secretRef of ['creds', { namespace: 'capa-system', name: 'creds' }])
    assert.deepEqual(await accepted(AWSClusterStaticIdentity, { secretRef }), { secretRef })
  for (const secretRef of ['', 7, true, ['creds'], null, {}, { name: 'creds' }, { namespace: 'capa-system', name: '' }])
    await refused(AWSClusterStaticIdentity, { secretRef }, /spec\.secretRef/)
})

test('R3.29 the fields of a role are checked against what STS takes', async () => {
  const role = (fields: Fields) => ({ roleARN, ...fields })
  await accepted(
    AWSClusterRoleIdentity,
    role({ sessionName: 'a.b@c', durationSeconds: 900, externalID: 'a:b/c', inlinePolicy: '{}' }),
  )
  const wrong: [Fields, RegExp][] = [
    [{ roleARN: 'arn:aws:iam::123456789012:user/alice' }, /spec.roleARN/],
    [{ sessionName: 'a b' }, /spec.sessionName/],
    [{ durationSeconds: 899 }, /spec.durationSeconds/],
    [{ durationSeconds: 43201 }, /spec.durationSeconds/],
    [{ externalID: 'a b' }, /spec.externalID/],
    [{ inlinePolicy: '{"Łódź":1}' }, /spec.inlinePolicy/],
    [{ tags: { 'aws:a': 'b' } }, /tag key/],
    [{ sourceIdentityRef: { kind: 'AWSServiceAccountIdentity', name: 'x' } }, /spec.sourceIdentityRef.kind/],
  ]
  for (const [fields, why] of wrong) await refused(AWSClusterRoleIdentity, role(fields), why)
})

test('R3.36 a service account identity is for STS and a day unless it says otherwise', async () => {
  assert.deepEqual(await accepted(AWSServiceAccountIdentity, { roleARN }), {
    roleARN,
    audiences: ['sts.amazonaws.com'],
    expirationSeconds: 86400,
  })
})

test('R4.1 each role and binding of a ClusterPermission says where it goes and whom it is for', async () => {
  const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }]
  const subject = { kind: 'User', name: 'alice' }
  await refused(ClusterPermission, { roles: [{ rules }] }, /either namespace or namespaceSelector/)
  await refused(ClusterPermission, { roles: [{ rules, namespace: 'a', namespaceSelector: {} }] }, /either namespace or/)
  await refused(
    ClusterPermission,
    { roleBindings: [{ namespace: 'a', roleRef: { kind: 'Role' } }] },
    /set subject or subjects/,
  )
  await refused(ClusterPermission, { clusterRoleBinding: {} }, /set subject or subjects/)
  await refused(ClusterPermission, { roleRefs: [{ kind: 'Role', name: 'x' }] }, /a Role needs its namespace/)
  await accepted(ClusterPermission, { clusterRoleBinding: { subject }, clusterRole: { rules } })
})

test('R5.1 a ManagedServiceAccount has a year of validity by default, and no less than API servers give', async () => {
  assert.deepEqual(await accepted(ManagedServiceAccount, {}), { rotation: { enabled: true, validity: '8640h0m0s' } })
  await accepted(ManagedServiceAccount, { rotation: { validity: '10m' } })
  await refused(ManagedServiceAccount, { rotation: { validity: '5m' } }, /spec.rotation.validity:.*below 10m/)
  await refused(ManagedServiceAccount, { rotation: { validity: 'a year' } }, /spec.rotation.validity/)
})

test('a kind is found by those who look for it as soon as its definition is installed', async () => {
  const { spec, ...first } = crds({ conversion: 'none' })[0]!
  for (const nth of ['first', 'second', 'third', 'fourth', 'fifth']) {
    const group = `${nth}.rules.test`
    const metadata = { name: `${spec.names.plural}.${group}` }
    await installCrds(client, [{ ...first, metadata, spec: { ...spec, group } }])
    const found = await new KindMapper(client).find({
      apiVersion: `${group}/${spec.versions[0]!.name}`,
      kind: spec.names.kind,
    })
    assert.equal(found?.plural, spec.names.plural, nth)
  }
})

test('R0.28 definitions that are as they should be are not written again; a field of an older version goes', async () => {
  const definitions = client.of(CustomResourceDefinition)
  const [first, ...others] = crds({ conversion: 'none' })
  const older = structuredClone(first!)
  const { openAPIV3Schema } = older.spec.versions[0]!.schema as { openAPIV3Schema: { properties: Fields } }
  openAPIV3Schema.properties['formerly'] = { type: 'string' }
  await installCrds(client, [older], { fieldManager: 'lanyard' })

  await installCrds(client, [first!, ...others], { fieldManager: 'the-next' })

  const written = (await definitions.list()).items.filter(({ metadata }) =>
    metadata.managedFields?.some((entry) => (entry as { manager?: string }).manager === 'the-next'),
  )
  assert.deepEqual(
    written.map(({ metadata }) => metadata.name),
    [first!.metadata.name],
  )
})
