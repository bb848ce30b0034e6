import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { manifestCondition, quiet, startWorkScene } from '../../../testkit/work-agent.ts'
import { AppliedManifestWork, installCrds, ManifestWork } from '../../api/index.ts'
import { resource, type Unstructured } from '../../kube/index.ts'
import { findCondition } from '../../runtime/index.ts'
import { readFeedback } from './feedback.ts'
import type { ManifestConfig } from './manifest.ts'

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  await installCrds(plane.client(), [
    ManifestWork.crd({ conversion: 'none' }),
    AppliedManifestWork.crd({ conversion: 'none' }),
  ])
})
after(() => plane.stop())

const at = (group: string, kind: string, plural: string) =>
  resource({ group, version: 'v1', kind, plural, namespaced: true })
const [Deployment, Job] = [at('apps', 'Deployment', 'deployments'), at('batch', 'Job', 'jobs')]
const template = (name: string) => ({
  metadata: { labels: { app: name } },
  spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'none' }] },
})
const deployment: Unstructured = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'main', image: 'none' }] } },
  },
}
const job: Unstructured = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'once', namespace: 'default' },
  spec: { template: template('once') },
}
const config = (group: string, plural: string, name: string, more: Partial<ManifestConfig>): ManifestConfig => ({
  resourceIdentifier: { group, resource: plural, namespace: 'default', name },
  ...more,
})

test('R1.52 values of a delivered object are reported when they change, not in a rush, and what is wrong with a path is said', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'f1', userAgent: 'feedback-agent', feedbackMs: 300 })
  const jsonPaths = [
    { name: 'image', path: '.spec.template.spec.containers[0].image' },
    { name: 'broken', path: '.status[' },
    { name: 'many', path: '.spec.template.spec.containers' },
  ]
  const manifestConfigs = [
    config('apps', 'deployments', 'web', {
      feedbackRules: [{ type: 'WellKnownStatus' }, { type: 'JSONPaths', jsonPaths }],
    }),
  ]
  await scene.create('web', [deployment], { manifestConfigs })
  const work = await scene.applied('web')
  const said = manifestCondition(work, 0, 'StatusFeedbackSynced')
  assert.equal(said?.reason, 'StatusFeedbackSyncFailed')
  assert.match(said?.message ?? '', /broken: JSON path "\.status\[" cannot be read.*many: the value is a list or a map/)

  const valuesOf = async (): Promise<Record<string, unknown>> => {
    const values = (await scene.work('web'))?.status?.resourceStatus?.manifests?.[0]?.statusFeedback?.values ?? []
    return Object.fromEntries(values.map(({ name, fieldValue: v }) => [name, v.integer ?? v.string]))
  }
  const since = new Date()
  for (let i = 1; i <= 30; i++)
    await scene.local
      .of(Deployment, 'default')
      .patch(
        'web',
        { merge: { status: { replicas: 30, readyReplicas: i, availableReplicas: i, observedGeneration: 1 } } },
        { subresource: 'status' },
      )
  await eventually(async () =>
    assert.deepEqual(await valuesOf(), { image: 'none', ReadyReplicas: 30, Replicas: 30, AvailableReplicas: 30 }),
  )
  await quiet(plane, 'feedback-agent')
  const { writes } = await plane.requestsBy('feedback-agent', { since })
  assert.ok(writes < 15, `${writes} writes for 30 changes`)
})

test('R1.52 a Job that is complete is said to be so, and is not run again when it is cleared away; CEL is refused aloud', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'f2' })
  const rules: ManifestConfig['conditionRules'] = [{ condition: 'Complete', type: 'WellKnownConditions' }]
  const manifestConfigs = [
    config('batch', 'jobs', 'once', { conditionRules: rules }),
    config('apps', 'deployments', 'web2', {
      conditionRules: [{ condition: 'Nice', type: 'CEL', celExpressions: ['true'] }],
    }),
  ]
  const web2 = { ...deployment, metadata: { name: 'web2', namespace: 'default' } }
  await scene.create('job', [job, web2], { manifestConfigs })
  const work = await scene.applied('job')
  assert.deepEqual(
    [manifestCondition(work, 0, 'Complete')?.status, manifestCondition(work, 0, 'Complete')?.reason],
    ['False', 'ConditionRuleEvaluated'],
  )
  assert.deepEqual(
    [manifestCondition(work, 1, 'Nice')?.status, manifestCondition(work, 1, 'Nice')?.reason],
    ['Unknown', 'ConditionRuleInvalid'],
  )
  assert.equal(findCondition(work, 'Complete')?.reason, 'ConditionRulesAggregated')

  const now = new Date().toISOString().slice(0, 19) + 'Z'
  const done = (type: string) => ({
    type,
    status: 'True',
    reason: 'Done',
    message: '',
    lastTransitionTime: now,
    lastProbeTime: now,
  })
  const status = {
    startTime: now,
    completionTime: now,
    succeeded: 1,
    conditions: [done('SuccessCriteriaMet'), done('Complete')],
  }
  await scene.local.of(Job, 'default').patch('once', { merge: { status } }, { subresource: 'status' })
  await eventually(async () => findCondition((await scene.work('job'))!, 'Complete')?.status === 'True')
  await scene.local.of(Job, 'default').delete('once', { propagationPolicy: 'Background' })
  await scene.local.of(Deployment, 'default').delete('web2')
  await eventually(() => scene.local.of(Deployment, 'default').get('web2'))
  assert.equal(await scene.local.of(Job, 'default').find('once'), undefined)
  await scene.stop()
  await scene.local.of(Deployment, 'default').delete('web2')
  scene.start()
  await eventually(() => scene.local.of(Deployment, 'default').get('web2'))
  assert.equal(await scene.local.of(Job, 'default').find('once'), undefined)
})

test('R1.52 values have their types, and none can make the status invalid', () => {
  const object: Unstructured = {
    metadata: {},
    status: { n: 1, f: 1.5, b: false, s: 'x', long: 'x'.repeat(2000), list: [1] },
  }
  const path = (name: string) => ({ name, path: `.status.${name}` })
  const rules: NonNullable<ManifestConfig['feedbackRules']> = [
    { type: 'JSONPaths', jsonPaths: ['n', 'f', 'b', 's', 'long', 'list', 'missing'].map(path) },
    { type: 'JSONPaths', jsonPaths: [path('n')] },
  ]
  const kind = { group: '', kind: 'Thing' }
  const { values, state } = readFeedback(object, kind, rules)
  assert.deepEqual(
    values.map(({ name, fieldValue }) => [name, fieldValue]),
    [
      ['n', { type: 'Integer', integer: 1 }],
      ['f', { type: 'String', string: '1.5' }],
      ['b', { type: 'Boolean', boolean: false }],
      ['s', { type: 'String', string: 'x' }],
    ],
  )
  assert.equal(
    state.message,
    'long: the value has 2000 characters; at most 1024 fit; list: the value is a list or a map; choose one field of it; n: another value has this name',
  )
  const raw = readFeedback(object, kind, [{ type: 'JSONPaths', jsonPaths: [path('list')] }], { rawJson: true })
  assert.deepEqual(raw.values[0]?.fieldValue, { type: 'JsonRaw', jsonRaw: '[1]' })
  assert.equal(readFeedback(object, kind, [{ type: 'WellKnownStatus' }]).state.reason, 'StatusFeedbackSyncFailed')
  assert.equal(
    readFeedback(object, kind, [{ type: 'JSONPaths', jsonPaths: [path('missing')] }]).state.reason,
    'NoStatusFeedbackSynced',
  )
})
