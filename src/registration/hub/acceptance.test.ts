import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import {
  clusterOf,
  createCluster,
  objectsOf,
  plainDriver,
  runHub,
  setAccepts,
} from '../../../testkit/registration-hub.ts'
import { annotation, crds, finalizer, installCrds, label, ManagedCluster } from '../../api/index.ts'
import { ClusterRole, ClusterRoleBinding, RoleBinding, type Client } from '../../kube/index.ts'
import { findCondition, isTrue, stalled } from '../../runtime/index.ts'
import { Accepted, rbac } from '../contract.ts'
import { permissionsOf, sharedRoles } from './permissions.ts'

let plane: ControlPlane
let client: Client
before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  client = plane.client()
  await installCrds(client, crds({ conversion: 'none' }))
})
after(() => plane.stop())

const isAccepted = async (name: string): Promise<ManagedCluster | false> => {
  const cluster = await clusterOf(client, name)
  return cluster !== undefined && isTrue(cluster, Accepted.type) && cluster
}
const madeFor = (name: string): string[] =>
  [
    `Namespace ${name}`,
    `ClusterRole ${rbac.cluster(name)}`,
    `ClusterRoleBinding ${rbac.cluster(name)}`,
    `RoleBinding ${rbac.registrationBinding(name)}`,
    `RoleBinding ${rbac.workBinding(name)}`,
  ].toSorted()

/** Nothing more is asked of the server: two looks at the log, with the time of a round trip between them, are the same. */
const isQuiet = async (userAgent: string): Promise<boolean> => {
  const before = (await plane.requestsBy(userAgent)).total
  for (let i = 0; i < 20; i++) await client.of(ManagedCluster).list()
  return (await plane.requestsBy(userAgent)).total === before
}

test('R1.41 R1.42 R1.43 R1.44 R1.45 an accepted cluster gets exactly its five objects, finalizer and condition, one request each', async (t) => {
  await runHub(t, plane, { userAgent: 'accepting', settings: { labels: { team: 'fleet' } } })
  await createCluster(client, 'a1')
  const cluster = await eventually(() => isAccepted('a1'))

  assert.deepEqual(await objectsOf(client, 'a1'), madeFor('a1'))
  assert.deepEqual(cluster.metadata.finalizers, [finalizer.managedCluster])
  const accepted = findCondition(cluster, Accepted.type)!
  assert.deepEqual([accepted.reason, accepted.message], ['HubClusterAdminAccepted', 'Accepted by hub cluster admin'])
  assert.equal(accepted.observedGeneration, cluster.metadata.generation)
  const role = await client.of(ClusterRole).get(rbac.cluster('a1'))
  assert.deepEqual(role.metadata.labels, { team: 'fleet', [label.clusterName]: 'a1' })
  const binding = await client.of(RoleBinding, 'a1').get(rbac.workBinding('a1'))
  assert.deepEqual(
    binding.subjects?.map((s) => `${s.kind} ${s.name}`),
    ['Group system:open-cluster-management:a1', 'Group open-cluster-management:a1'],
  )

  assert.ok(await eventually(() => isQuiet('accepting')))
  const { entries } = await plane.requestsBy('accepting')
  const writes = entries.filter(({ verb }) => !['list', 'watch'].includes(verb))
  const ofRoles = sharedRoles.map(() => 'create clusterroles')
  assert.deepEqual(
    writes.map((e) => [e.verb, e.resource, e.subresource].filter(Boolean).join(' ')).toSorted(),
    [
      ...ofRoles,
      'create clusterrolebindings',
      'create clusterroles',
      'create namespaces',
      'create rolebindings',
      'create rolebindings',
      'patch managedclusters',
      'patch managedclusters status',
    ].toSorted(),
  )
})

test('R1.45 fifty clusters at once cost seven requests each, and then nothing', async (t) => {
  await runHub(t, plane, { userAgent: 'many' })
  const names = Array.from({ length: 50 }, (_, i) => `many-${i}`)
  await Promise.all(names.map((name) => createCluster(client, name)))
  await eventually.watching(client.of(ManagedCluster), (clusters) =>
    names.every((name) => clusters.some((c) => c.metadata.name === name && isTrue(c, Accepted.type))),
  )
  assert.ok(await eventually(() => isQuiet('many')))
  const { entries } = await plane.requestsBy('many')
  const others = entries.filter(({ verb }) => !['list', 'watch'].includes(verb))
  assert.equal(others.length, 7 * names.length)
  for (const name of names) assert.deepEqual(await objectsOf(client, name), madeFor(name))
})

test('R0.28 RBAC of a cluster that was deleted or edited is repaired, and so are the roles that all share', async (t) => {
  await runHub(t, plane)
  await createCluster(client, 'drift')
  await eventually(() => isAccepted('drift'))
  const before = await client.of(ClusterRole).get(rbac.cluster('drift'))

  await Promise.all([
    client.of(ClusterRole).patch(rbac.cluster('drift'), {
      merge: { rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] },
    }),
    client.of(ClusterRoleBinding).delete(rbac.cluster('drift')),
    client.of(RoleBinding, 'drift').delete(rbac.workBinding('drift')),
    client.of(RoleBinding, 'drift').patch(rbac.registrationBinding('drift'), {
      merge: { subjects: [{ kind: 'User', name: 'eve', apiGroup: 'rbac.authorization.k8s.io' }] },
    }),
    client.of(ClusterRole).delete(rbac.workRole),
    client.of(ClusterRole).patch(rbac.registrationRole, { merge: { metadata: { labels: null }, rules: [] } }),
  ])

  await eventually(async () => {
    assert.deepEqual(await objectsOf(client, 'drift'), madeFor('drift'))
    assert.deepEqual((await client.of(ClusterRole).get(rbac.cluster('drift'))).rules, before.rules)
    for (const role of sharedRoles)
      assert.deepEqual((await client.of(ClusterRole).get(role.metadata.name!)).rules, role.rules)
    const bindings = permissionsOf('drift', 'accepted', { labels: {} }).filter((o) => o.kind === 'RoleBinding')
    for (const wanted of bindings as RoleBinding[]) {
      const present = await client.of(RoleBinding, 'drift').get(wanted.metadata.name!)
      assert.equal(present.metadata.deletionTimestamp, undefined)
      assert.deepEqual(present.subjects, wanted.subjects)
    }
  })
})

test('R1.45 what a driver cannot do is told in the condition, and so is that it can again', async (t) => {
  let broken = true
  const grant = async (): Promise<void> => {
    if (broken)
      throw stalled('RoleNotTrusted', { message: 'role r does not trust us', next: 'correct its trust policy' })
  }
  await runHub(t, plane, { settings: { drivers: [plainDriver({ grant })] } })
  await createCluster(client, 'undriven')
  await eventually(async () => {
    const condition = findCondition((await clusterOf(client, 'undriven'))!, Accepted.type)
    assert.deepEqual(
      [condition?.status, condition?.reason, condition?.message],
      ['False', 'Error', 'role r does not trust us; correct its trust policy'],
    )
  })
  broken = false
  await client.of(ManagedCluster).patch('undriven', { merge: { metadata: { annotations: { touched: 'yes' } } } })
  assert.equal(
    findCondition(await eventually(() => isAccepted('undriven')), Accepted.type)?.reason,
    'HubClusterAdminAccepted',
  )
})

test('R1.39 a listed cluster is accepted without a person, once; a later denial sticks though its agent takes the mark off', async (t) => {
  const waitsForPerson = ({ metadata }: ManagedCluster) =>
    metadata.name === 'auto' ? undefined : { reason: 'NotListed', message: 'not listed' }
  await runHub(t, plane, {
    gates: { managedClusterAutoApproval: true },
    settings: { drivers: [plainDriver({ waitsForPerson })] },
  })
  await createCluster(client, 'unlisted', false)
  await createCluster(client, 'auto', false)
  const accepted = await eventually(() => isAccepted('auto'))
  assert.equal(accepted.spec.hubAcceptsClient, true)
  assert.ok(Date.parse(accepted.metadata.annotations![annotation.automaticallyAcceptedOn]!) > 0)

  const mark = { metadata: { annotations: { [annotation.automaticallyAcceptedOn]: null } } }
  await client.of(ManagedCluster).patch('auto', { merge: mark })
  await setAccepts(client, 'auto', false)
  await eventually(async () => {
    const condition = findCondition((await clusterOf(client, 'auto'))!, Accepted.type)
    assert.equal(condition?.reason, 'HubClusterAdminDenied')
  })
  await client.of(ManagedCluster).patch('auto', { merge: { metadata: { annotations: { touched: 'yes' } } } })
  await createCluster(client, 'auto-later', true)
  await eventually(() => isAccepted('auto-later'))
  assert.equal((await clusterOf(client, 'auto'))!.spec.hubAcceptsClient, false)
  const unlisted = (await clusterOf(client, 'unlisted'))!
  assert.equal(unlisted.spec.hubAcceptsClient, false)
  assert.deepEqual(await objectsOf(client, 'unlisted'), [])
})

test('R1.57 a cluster whose finalizer was taken off and that is gone leaves no access behind', async (t) => {
  const hub = await runHub(t, plane)
  await createCluster(client, 'vanished')
  await eventually(() => isAccepted('vanished'))
  await hub.stop()
  await client.of(ManagedCluster).patch('vanished', { merge: { metadata: { finalizers: [] } } })
  await client.of(ManagedCluster).delete('vanished')
  await runHub(t, plane)
  await eventually(async () => assert.deepEqual(await objectsOf(client, 'vanished'), ['Namespace vanished']))
})
