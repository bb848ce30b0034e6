import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startControlPlane } from '../../testkit/index.ts'
import { servedResources } from './served-resources.ts'

test('R0.8 every kind of a server is listed once, with its scope and verbs, in two requests', async (t) => {
  const plane = await startControlPlane({ controllerManager: false })
  t.after(() => plane.stop())
  const { resources, unreachable } = await servedResources(
    plane.client({ user: 'a', groups: ['system:masters'], userAgent: 'asks' }),
  )
  const found = (plural: string, group: string) => resources.filter((r) => r.plural === plural && r.group === group)
  const [configMap] = found('configmaps', '')
  assert.deepEqual([configMap?.version, configMap?.kind, configMap?.namespaced], ['v1', 'ConfigMap', true])
  assert.ok(configMap!.verbs.includes('deletecollection'))
  assert.deepEqual(
    found('clusterroles', 'rbac.authorization.k8s.io').map((r) => r.namespaced),
    [false],
  )
  assert.equal(new Set(resources.map((r) => `${r.plural}.${r.group}`)).size, resources.length)
  assert.equal(
    resources.some((r) => r.plural.includes('/')),
    false,
  )
  assert.deepEqual(unreachable, [])
  assert.equal((await plane.requestsBy('asks')).total, 2)
})

test('R0.8 a group whose own server does not answer is named', async (t) => {
  const plane = await startControlPlane({ controllerManager: false, audit: false })
  t.after(() => plane.stop())
  const service = {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: 'v1.broken.example.com' },
    spec: {
      group: 'broken.example.com',
      version: 'v1',
      groupPriorityMinimum: 100,
      versionPriority: 100,
      service: { namespace: 'default', name: 'nowhere' },
      insecureSkipTLSVerify: true,
    },
  }
  await plane.kubectl(['apply', '-f', '-'], { input: JSON.stringify(service) })
  const { eventually } = await import('../../testkit/index.ts')
  await eventually(async () => {
    assert.deepEqual((await servedResources(plane.client())).unreachable, ['broken.example.com'])
  })
})
