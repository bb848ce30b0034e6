import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually, startControlPlane } from '../../testkit/index.ts'
import { allow, rule } from '../../testkit/people.ts'
import { quiet } from '../../testkit/work-agent.ts'
import { ClusterPermission, crds, installCrds, ManagedCluster, ManifestWork } from '../api/index.ts'
import { Namespace } from '../kube/index.ts'
import { controllerRules, workNameOf } from '../permissions/contract.ts'
import { startPermissions } from '../permissions/hub/index.ts'
import { isTrue, Manager } from '../runtime/index.ts'
import {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
  webhookServer,
} from '../runtime/webhook/index.ts'
import { workAgentExecutor } from '../work/contract.ts'
import { workWebhookConfigurations, workWebhooks } from '../work/hub/index.ts'

test('R4.22 R4.23 with NilExecutorValidating the permission controller may write works with its own role alone, and the work agent that admission writes into them stays there', async (t) => {
  await using plane = await startControlPlane()
  const admin = plane.client()
  await installCrds(admin, crds({ conversion: 'none' }))
  await admin.of(Namespace).create({ metadata: { name: 'c1' } })
  await admin.of(ManagedCluster).create({ metadata: { name: 'c1' }, spec: { hubAcceptsClient: true } })
  const pair = plane.serverCertificate()
  const routes = workWebhooks({ client: admin, gates: { nilExecutorValidating: true } })
  const server = webhookServer({ host: '127.0.0.1', port: 0, certificate: () => pair, routes })
  await server.start()
  t.after(() => server.stop())
  const where = { url: `https://127.0.0.1:${server.port}`, caBundle: Buffer.from(plane.ca).toString('base64') }
  const [mutation, validation] = workWebhookConfigurations(where)
  await admin.of(MutatingWebhookConfiguration).create(mutation!)
  await admin.of(ValidatingWebhookConfiguration).create(validation!)
  const works = admin.of(ManifestWork, 'c1')
  const manifests = [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'default' } }]
  const probe: ManifestWork = { metadata: { name: 'probe', namespace: 'c1' }, spec: { workload: { manifests } } }
  await eventually(async () => (await works.create(probe, { dryRun: true })).spec.executor !== undefined)

  await allow(admin, 'controller', [...controllerRules])
  const client = plane.client({ user: 'controller', userAgent: 'permissions' })
  const manager = new Manager({ client, gracePeriodMs: 0 })
  startPermissions(manager, { client, admission: false })
  const end = new AbortController()
  const running = manager.run(end.signal)
  const permissions = admin.of(ClusterPermission, 'c1')
  const subject = (name: string) => ({ kind: 'User', name })
  const { metadata } = await permissions.create({
    metadata: { name: 'executed', namespace: 'c1' },
    spec: { clusterRole: { rules: [rule('get', 'pods')] }, clusterRoleBinding: { subject: subject('ada') } },
  })
  await eventually(async () => isTrue(await permissions.get('executed'), 'RBACManifestWorkCreated'))
  const name = workNameOf('executed', metadata.uid!)
  const work = await works.get(name)
  assert.deepEqual(work.spec.executor, workAgentExecutor)
  await quiet(plane, 'permissions')
  assert.equal((await works.get(name)).metadata.generation, work.metadata.generation)
  await permissions.patch('executed', { merge: { spec: { clusterRoleBinding: { subject: subject('bob') } } } })
  await eventually(async () => assert.match(JSON.stringify((await works.get(name)).spec), /"bob"/))
  assert.deepEqual((await works.get(name)).spec.executor, workAgentExecutor)
  end.abort()
  await running
})
