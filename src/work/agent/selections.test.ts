import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { manifest, quiet, startWorkScene } from '../../../testkit/work-agent.ts'
import { AppliedManifestWork, installCrds, ManifestWork } from '../../api/index.ts'
import {
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  Namespace,
  RoleBinding,
  type LabelSelector,
} from '../../kube/index.ts'
import { inParallel } from '../../runtime/index.ts'

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane()
  await installCrds(plane.client(), [
    ManifestWork.crd({ conversion: 'none' }),
    AppliedManifestWork.crd({ conversion: 'none' }),
  ])
})
after(() => plane.stop())

const perNamespace = (name: string, namespaceSelector: LabelSelector, manifests: unknown[]) => ({
  apiVersion: 'work.lanyard.io/v1alpha1',
  kind: 'PerNamespace',
  metadata: { name },
  spec: { namespaceSelector, manifests },
})
const settings = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { a: '1' } })
const inTeam = (team: string): LabelSelector => ({ matchLabels: { team } })
const createNamespace = (name: string, labels: Record<string, string>) =>
  plane.client().of(Namespace).create({ metadata: { name, labels } })
const label = (name: string, labels: Record<string, string | null>) =>
  plane
    .client()
    .of(Namespace)
    .patch(name, { merge: { metadata: { labels } } })
/** The namespaces that have a ConfigMap of this name. */
const placesOf = async (name: string): Promise<string[]> => {
  const { items } = await plane
    .client()
    .of(ConfigMap)
    .list({ fieldSelector: `metadata.name=${name}` })
  return items.map(({ metadata }) => metadata.namespace!).toSorted()
}
const isAt = (name: string, places: string[]) =>
  eventually(async () => assert.deepEqual(await placesOf(name), places), { timeoutMs: 60_000 })

test('R4.9 what a selector chooses follows namespaces as they are made, labelled, unlabelled and deleted', async (t) => {
  await Promise.all([createNamespace('f-a', { team: 'f' }), createNamespace('f-b', { team: 'other' })])
  const scene = await startWorkScene(t, { hub: plane, cluster: 'follows' })
  await scene.create('w', [
    manifest.configMap('default', 'plain'),
    perNamespace('p', inTeam('f'), [settings('chosen')]),
  ])
  const work = await scene.applied('w')
  assert.deepEqual(await placesOf('chosen'), ['f-a'])
  const said = work.status?.resourceStatus?.manifests?.map(
    ({ resourceMeta: { kind, namespace, name, ordinal = 0 }, conditions }) => [
      ordinal,
      kind,
      namespace,
      name,
      conditions?.find(({ type }) => type === 'Applied')?.message,
    ],
  )
  assert.deepEqual(said, [
    [0, 'ConfigMap', 'default', 'plain', 'Apply manifest complete'],
    [1, 'ConfigMap', 'f-a', 'chosen', 'Apply manifest complete'],
    [1, 'PerNamespace', undefined, 'p', '1 namespace matches'],
  ])

  await label('f-b', { team: 'f' })
  await createNamespace('f-c', { team: 'f' })
  await isAt('chosen', ['f-a', 'f-b', 'f-c'])
  await label('f-a', { team: null })
  await isAt('chosen', ['f-b', 'f-c'])
  await plane.client().of(Namespace).delete('f-b')
  await isAt('chosen', ['f-c'])

  // Protected like everything else that is delivered.
  await plane.client().of(ConfigMap, 'f-c').delete('chosen')
  await isAt('chosen', ['f-c'])
  await plane
    .client()
    .of(ConfigMap, 'f-c')
    .patch('chosen', { merge: { data: { a: 'mine' } } })
  await eventually(async () => (await plane.client().of(ConfigMap, 'f-c').get('chosen')).data?.['a'] === '1')

  await scene.change('w', (spec) => ({
    ...spec,
    workload: { manifests: [perNamespace('p', {}, [settings('chosen')])] },
  }))
  await eventually(async () => (await placesOf('chosen')).includes('kube-system'))
  await scene.hub.of(ManifestWork, 'follows').delete('w')
  await scene.deleted('w')
  assert.deepEqual(await placesOf('chosen'), [])
})

test('R4.9 a restart in between loses nothing, and another namespace costs no requests for those that are right', async (t) => {
  await Promise.all(['r-a', 'r-b', 'r-c'].map((name) => createNamespace(name, { team: 'r' })))
  const scene = await startWorkScene(t, { hub: plane, cluster: 'restarts' })
  await scene.create('w', [perNamespace('p', inTeam('r'), [settings('kept')])])
  await scene.applied('w')
  await scene.stop()
  await label('r-a', { team: null })
  await createNamespace('r-d', { team: 'r' })
  scene.start()
  await isAt('kept', ['r-b', 'r-c', 'r-d'])

  await quiet(plane, 'work-agent-restarts')
  const before = await plane.requestsBy('work-agent-restarts')
  await createNamespace('r-e', { team: 'r' })
  await isAt('kept', ['r-b', 'r-c', 'r-d', 'r-e'])
  await quiet(plane, 'work-agent-restarts')
  const { total } = await plane.requestsBy('work-agent-restarts')
  // The object, the record before and after, the status, and a watch or two that widen.
  assert.ok(total - before.total <= 8, `${total - before.total} requests`)
})

test('R4.9 an agent that may not list namespaces says so and takes nothing away', async (t) => {
  await createNamespace('n-a', { team: 'n' })
  const scene = await startWorkScene(t, { hub: plane, cluster: 'blind' })
  await scene.create('w', [perNamespace('p', inTeam('n'), [settings('stays')])])
  await scene.applied('w')
  await scene.stop()

  const admin = plane.client()
  const everything = [
    {
      apiGroups: ['*'],
      resources: ['configmaps', 'appliedmanifestworks', 'appliedmanifestworks/status'],
      verbs: ['*'],
    },
  ]
  await admin.of(ClusterRole).create({ metadata: { name: 'blind-agent' }, rules: everything })
  await admin.of(ClusterRoleBinding).create({
    metadata: { name: 'blind-agent' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'blind-agent' },
    subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'blind' }],
  })
  const blind = await startWorkScene(t, { hub: plane, cluster: 'blind-2', localUser: 'blind' })
  await blind.create('w', [perNamespace('p', inTeam('n'), [settings('never')])])
  const work = await blind.failed('w')
  assert.match(JSON.stringify(work.status?.conditions), /namespaces of this cluster are not known yet/)
  assert.deepEqual(await placesOf('stays'), ['n-a'])
})

test('R4.9 two selectors that meet in a namespace are reported there, and the first one wins', async (t) => {
  await createNamespace('t-a', { team: 't', stage: 't' })
  const scene = await startWorkScene(t, { hub: plane, cluster: 'twins' })
  await scene.create('w', [
    perNamespace('p', inTeam('t'), [settings('twin')]),
    perNamespace('q', { matchLabels: { stage: 't' } }, [settings('twin')]),
  ])
  const work = await scene.failed('w')
  assert.match(JSON.stringify(work.status), /the same object as manifest 0: keep one of the two/)
  await isAt('twin', ['t-a'])
})

test('R4.9 many namespaces at once: all get it, and all lose it', async (t) => {
  const names = Array.from({ length: 60 }, (_, i) => `many-${i}`)
  await inParallel(
    16,
    names.map((name) => async () => void (await createNamespace(name, { team: 'many' }))),
  )
  const scene = await startWorkScene(t, { hub: plane, cluster: 'many' })
  const bound = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'many' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
    subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'ada' }],
  }
  await scene.create('w', [perNamespace('p', inTeam('many'), [bound])])
  const work = await scene.applied('w', 120_000)
  const { items } = await plane.client().of(RoleBinding).list({ fieldSelector: 'metadata.name=many' })
  assert.equal(items.length, 60)
  assert.match(JSON.stringify(work.status), /60 namespaces match/)
  await scene.hub.of(ManifestWork, 'many').delete('w')
  await eventually(async () => (await scene.work('w')) === undefined, { timeoutMs: 120_000 })
  const left = await plane.client().of(RoleBinding).list({ fieldSelector: 'metadata.name=many' })
  assert.equal(left.items.length, 0)
})
