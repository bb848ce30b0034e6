/** The traps of moving identities that other tools fall into, one test each. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createKeys, hubNamespace, namespace, roleReference, staticReference } from '../../../testkit/identity-hub.ts'
import { keysOf, moved, refused, startTwoHubs, unseen, type TwoHubs } from '../../../testkit/two-hubs.ts'
import { AWSCluster, AWSClusterRoleIdentity, AWSClusterStaticIdentity } from '../../api/index.ts'
import { Namespace, Secret } from '../../kube/index.ts'

let hubs: TwoHubs
before(async () => {
  hubs = await startTwoHubs()
})
after(() => hubs.stop())

const all = { allowedNamespaces: {} }
const moving = (space: string, ...more: string[]): string[] => ['-n', space, '--no-account-check', ...more]

test('R3.56 R3.58 pitfall: a global identity already exists in the target, and the UID of the source is recorded for it: a Secret under it gets the UID of the target’s here, or it would be collected as garbage', async () => {
  const { one, two, here, there } = hubs
  const name = await unseen(here, 'known/c')
  const atSource = await here.of(AWSClusterStaticIdentity).get(name)
  // As other controllers leave it: the Secret is owned by its identity.
  const ownerOf = (uid: string) => ({
    apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta2',
    kind: 'AWSClusterStaticIdentity',
    name,
    uid,
  })
  const ownerReferences = [ownerOf(atSource.metadata.uid!)]
  await here.of(Secret, hubNamespace).patch(name, { merge: { metadata: { ownerReferences } } })
  const known = await there
    .of(AWSClusterStaticIdentity)
    .create({ metadata: { name }, spec: { ...all, secretRef: { namespace: hubNamespace, name } } })

  await moved(moving('known'), one, two)
  const secret = await there.of(Secret, hubNamespace).get(name)
  assert.deepEqual(secret.metadata.ownerReferences, [ownerOf(known.metadata.uid!)])
  assert.equal((await there.of(AWSClusterStaticIdentity).get(name)).metadata.uid, known.metadata.uid)
})

test('R3.58 pitfall: a pre-existing target identity with the same name but different content is silently kept: it is refused here with the difference, no secret is shown, and who may use it can be left as it is', async () => {
  const { one, two, here, there } = hubs
  const name = await unseen(here, 'same/c')
  const statics = there.of(AWSClusterStaticIdentity)

  await statics.create({ metadata: { name }, spec: { ...all, secretRef: { namespace: 'other', name } } })
  await refused(
    hubs,
    moving('same'),
    /exists on the target with another content: spec.secretRef is .*lanyard-hub.* at the source and .*other.* on the target/,
  )
  await statics.delete(name)
  await statics.create({ metadata: { name }, spec: { secretRef: name, allowedNamespaces: { list: ['same', 'more'] } } })
  await refused(
    hubs,
    moving('same'),
    /spec.allowedNamespaces is \{\} at the source and \{"list":\["more","same"\]\} on the target[^]*--keep-allowed-namespaces/,
  )
  await createKeys(there, `${hubNamespace}/${name}`, keysOf('another'))
  await refused(
    hubs,
    moving('same', '--keep-allowed-namespaces'),
    /Secret lanyard-hub\/same-c exists on the target and holds another access key/,
  )
  await there.of(Secret, hubNamespace).delete(name)

  await moved(moving('same', '--keep-allowed-namespaces'), one, two)
  assert.deepEqual((await statics.get(name)).spec.allowedNamespaces, { list: ['same', 'more'] })
})

test('R3.56 pitfall: secretRef has no namespace, and the managers of source and target run in different namespaces: the Secret lands where the target’s manager looks; one that is elsewhere by intention stays there, and its namespace is made', async () => {
  const { one, two, here, there } = hubs
  const plain = await unseen(here, 'spaces/plain', { secretRef: 'spaces-plain' })
  const vault = { namespace: 'vault', name: 'spaces-vault' }
  const elsewhere = await unseen(here, 'spaces/vault', { secretRef: vault })
  // The namespace of the clusters is there, and those of the Secrets are not: nothing can be tried in those.
  await namespace(there, 'spaces')

  await moved(moving('spaces', '--to-hub-namespace', 'capa-system'), one, two)

  const keyIn = async (space: string, name: string): Promise<string> =>
    Buffer.from((await there.of(Secret, space).get(name)).data!['AccessKeyID']!, 'base64').toString()
  assert.equal(await keyIn('capa-system', plain), keysOf(plain).accessKeyId)
  assert.equal(await keyIn('vault', elsewhere), keysOf(elsewhere).accessKeyId)
  const statics = there.of(AWSClusterStaticIdentity)
  assert.equal((await statics.get(plain)).spec.secretRef, plain)
  assert.deepEqual((await statics.get(elsewhere)).spec.secretRef, vault)
  for (const space of [hubNamespace, 'capa-system'])
    assert.equal(await there.of(Secret, space).find(elsewhere), undefined)
  assert.ok(await here.of(Secret, 'vault').find(elsewhere))
})

test('R3.56 pitfall: allowedNamespaces selectors depend on Namespace labels, and target namespaces are created without labels: those that permission depends on go along, and a namespace that is there without them is not given them', async () => {
  const { one, two, here, there } = hubs
  const allowedNamespaces = { selector: { matchLabels: { tier: 'gold' } } }
  const labels = { tier: 'gold', colour: 'blue' }
  await unseen(here, 'gold/c', { labels, allowedNamespaces })
  await unseen(here, 'poor/c', { labels, allowedNamespaces })
  await namespace(there, 'poor')

  await refused(hubs, moving('poor'), /cannot be used at the target[^]*kubectl label namespace poor tier=gold/)
  await moved(moving('gold'), one, two)

  const { metadata } = await there.of(Namespace).get('gold')
  assert.deepEqual(
    { tier: metadata.labels?.['tier'], colour: metadata.labels?.['colour'] },
    { tier: 'gold', colour: undefined },
  )
})

test('R3.56 pitfall: the Secret is only in the owner chain if the controller has resolved the identity at least once: one that was never used moves with its Secret', async () => {
  const { one, two, here, there } = hubs
  const name = await unseen(here, 'never/c')
  assert.equal((await here.of(Secret, hubNamespace).get(name)).metadata.ownerReferences, undefined)

  await moved(moving('never'), one, two)

  const { data } = await there.of(Secret, hubNamespace).get(name)
  assert.deepEqual(data, (await here.of(Secret, hubNamespace).get(name)).data)
})

test('R3.56 R3.57 pitfall: role to source references are plain spec fields, not owner refs, and all identities are moved because of that: identityRef, sourceIdentityRef and secretRef are followed here, and what no cluster needs stays', async () => {
  const { one, two, here, there } = hubs
  const name = await unseen(here, 'links/c')
  const unneeded = await unseen(here, 'others/c')
  const roles = here.of(AWSClusterRoleIdentity)
  const role = (to: string, account: string, source: object) =>
    roles.create({
      metadata: { name: to },
      spec: { ...all, roleARN: `arn:aws:iam::${account}:role/a`, sourceIdentityRef: source as never },
    })
  await role('near', '220000000021', staticReference(name))
  await role('far', '220000000022', roleReference('near'))
  await role('strange', '220000000023', staticReference(name))
  await here.of(AWSCluster, 'links').patch('c', { merge: { spec: { identityRef: roleReference('far') } } })

  await moved(moving('links'), one, two)

  const names = async (client: typeof here) =>
    (await client.of(AWSClusterRoleIdentity).list()).items.map(({ metadata }) => metadata.name!).toSorted()
  assert.deepEqual(await names(there), ['far', 'near'])
  assert.deepEqual(await names(here), ['far', 'near', 'strange'])
  assert.ok(await there.of(Secret, hubNamespace).find(name))
  assert.equal(await there.of(Secret, hubNamespace).find(unneeded), undefined)
  assert.equal(await there.of(AWSClusterStaticIdentity).find(unneeded), undefined)
})
