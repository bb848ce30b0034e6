import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { ConfigMap, resource, Secret, ServiceAccount, type KubeObject } from '../../src/kube/index.ts'
import { createAuthority, issue } from '../../src/runtime/pki/index.ts'
import { eventually, startControlPlane, type ControlPlane } from '../index.ts'
import { jumpingClock } from '../jumping-clock.ts'
import { ask, deployment, podsOf, readyPods, witness, witnessWith } from './fixture.ts'
import { Deployment, Service, startRunner, type Runner } from './index.ts'
import type { Container, PodSpec } from './kinds.ts'

let plane: ControlPlane
let runner: Runner
const clock = jumpingClock()
before(async () => {
  plane = await startControlPlane()
  runner = await startRunner(plane, { clock })
})
after(async () => {
  await runner?.stop()
  await plane?.stop()
})

interface Job extends KubeObject {
  spec: object
  status?: { succeeded?: number; failed?: number; conditions?: { type: string; status: string }[] }
}
const Job = resource<Job>({ group: 'batch', version: 'v1', kind: 'Job', plural: 'jobs', namespaced: true })
interface CronJob extends KubeObject {
  spec: object
  status?: { lastScheduleTime?: string; lastSuccessfulTime?: string }
}
const CronJob = resource<CronJob>({
  group: 'batch',
  version: 'v1',
  kind: 'CronJob',
  plural: 'cronjobs',
  namespaced: true,
})
const deployments = () => plane.client().of(Deployment, 'default')
const shell = (script: string): Container => ({ name: 'shell', image: 'shell', command: ['/bin/sh', '-c', script] })
const template = (script: string): { spec: PodSpec } => ({
  spec: { restartPolicy: 'Never', containers: [shell(script)] },
})
interface Given {
  env: Record<string, string>
}

test('a Job succeeds or fails with its process', async () => {
  const jobs = plane.client().of(Job, 'default')
  const job = (name: string, script: string): Job => ({
    metadata: { name },
    spec: { backoffLimit: 0, template: template(script) },
  })
  await jobs.create(job('good', 'exit 0'))
  await jobs.create(job('bad', 'echo no >&2; exit 4'))
  const outcome = (name: string) =>
    eventually(async () => {
      const { status } = await jobs.get(name)
      const over = status?.conditions?.filter((c) => c.status === 'True').map((c) => c.type) ?? []
      return (over.includes('Complete') || over.includes('Failed')) && { ...status, over }
    })

  const good = await outcome('good')
  assert.equal(good.succeeded, 1)
  assert.ok(good.over.includes('Complete'))
  const bad = await outcome('bad')
  assert.equal(bad.failed, 1)
  assert.ok(bad.over.includes('Failed'))
  const [failed] = await podsOf(plane, 'job-name=bad')
  assert.equal(failed!.status!.containerStatuses![0]!.state.terminated!.exitCode, 4)
  assert.match(runner.log('default', 'bad'), /^no$/m)
})

test('a CronJob runs by its schedule', async () => {
  const cronJobs = plane.client().of(CronJob, 'default')
  await cronJobs.create({
    metadata: { name: 'often' },
    spec: { schedule: '@every 1s', jobTemplate: { spec: { template: template('exit 0') } } },
  })
  const { status } = await eventually(
    async () => {
      const seen = await cronJobs.get('often')
      return seen.status?.lastSuccessfulTime !== undefined && seen
    },
    { timeoutMs: 60_000 },
  )
  assert.ok(status!.lastScheduleTime)
  await cronJobs.delete('often')
})

interface Review {
  status: { userInfo: { username: string; extra: Record<string, string[]> } }
}

test('a process finds its API server as in any pod, with a token that is bound to the pod and renewed at 80 % of its life', async () => {
  await plane
    .client()
    .of(ServiceAccount, 'default')
    .create({ metadata: { name: 'app' } })
  const projected = { sources: [{ serviceAccountToken: { path: 'token', audience: 'vault', expirationSeconds: 600 } }] }
  const container = witnessWith(
    { VAULT: '/var/vault/token' },
    { volumeMounts: [{ name: 'vault', mountPath: '/var/vault' }] },
  )
  await deployments().create(
    deployment('identity', [container], { serviceAccountName: 'app', volumes: [{ name: 'vault', projected }] }),
  )
  const [pod] = await readyPods(plane, 'identity')

  const { userInfo } = (await ask<Review>(pod!, '/who')).status
  assert.equal(userInfo.username, 'system:serviceaccount:default:app')
  assert.deepEqual(userInfo.extra['authentication.kubernetes.io/pod-uid'], [pod!.metadata.uid])
  const { env } = await ask<Given>(pod!, '/given')
  const claims = () => {
    const token = readFileSync(env['VAULT']!, 'utf8')
    return JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as Record<string, unknown>
  }
  const first = claims()
  assert.deepEqual(first['aud'], ['vault'])
  assert.equal(Number(first['exp']) - Number(first['iat']), 600)

  clock.jump(470_000)
  await ask(pod!, '/who')
  assert.equal(claims()['jti'], first['jti'], 'too early')
  clock.jump(20_000)
  await eventually(() => assert.notEqual(claims()['jti'], first['jti']))
})

test('a service account that names an IAM role gives its pods what EKS would give them', async () => {
  const role = 'arn:aws:iam::111122223333:role/app'
  await plane
    .client()
    .of(ServiceAccount, 'default')
    .create({ metadata: { name: 'aws', annotations: { 'eks.amazonaws.com/role-arn': role } } })
  await deployments().create(deployment('aws', [witness], { serviceAccountName: 'aws' }))
  const [pod] = await readyPods(plane, 'aws')
  const { env } = await ask<Given>(pod!, '/given')

  assert.equal(env['AWS_ROLE_ARN'], role)
  const token = readFileSync(env['AWS_WEB_IDENTITY_TOKEN_FILE']!, 'utf8')
  const claims = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString())
  assert.deepEqual(claims.aud, ['sts.amazonaws.com'])
  assert.equal(claims.sub, 'system:serviceaccount:default:aws')
})

test('R0.30 the API server calls a webhook by its Service, over TLS to the pod, whichever of its pods is ready', async () => {
  const admin = plane.client()
  const authority = createAuthority({ commonName: 'webhook', validForMs: 86_400_000, now: new Date() })
  const pair = issue(authority, {
    commonName: 'guard',
    dnsNames: ['guard.default.svc'],
    usages: ['server'],
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 3_600_000),
  })
  await admin.of(Secret, 'default').create({
    metadata: { name: 'guard' },
    stringData: { 'tls.crt': pair.cert, 'tls.key': pair.key },
  })
  const script = `
    const { readFileSync } = require('node:fs')
    const at = (name) => readFileSync(process.env.CERTIFICATE + '/' + name)
    require('node:https').createServer({ cert: at('tls.crt'), key: at('tls.key') }, async (request, response) => {
      if (request.method !== 'POST') return response.end()
      const { apiVersion, kind, request: { uid } } = JSON.parse(Buffer.concat(await request.toArray()))
      const status = { message: 'refused by ' + process.env.HOSTNAME }
      response.setHeader('connection', 'close').end(JSON.stringify({ apiVersion, kind, response: { uid, allowed: false, status } }))
    }).listen(9443, process.env.POD_IP)`
  const container: Container = {
    ...witnessWith({ CERTIFICATE: '/tls' }),
    command: [process.execPath, '-e', script],
    ports: [{ name: 'webhooks', containerPort: 9443 }],
    volumeMounts: [{ name: 'tls', mountPath: '/tls' }],
    readinessProbe: { httpGet: { port: 'webhooks', scheme: 'HTTPS' }, periodSeconds: 1, timeoutSeconds: 10 },
  }
  const volumes = [{ name: 'tls', secret: { secretName: 'guard' } }]
  await admin.of(Service, 'default').create({
    metadata: { name: 'guard' },
    spec: { selector: { app: 'guard' }, ports: [{ port: 443, targetPort: 'webhooks' }] },
  })
  const webhook = {
    name: 'guard.lanyard.test',
    clientConfig: {
      service: { namespace: 'default', name: 'guard' },
      caBundle: Buffer.from(authority.cert).toString('base64'),
    },
    rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
    matchConditions: [{ name: 'ours', expression: 'object.metadata.name == "guarded"' }],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
  }
  const kind = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingWebhookConfiguration' }
  await plane.kubectl(['create', '-f', '-'], {
    input: JSON.stringify({ ...kind, metadata: { name: 'guard' }, webhooks: [webhook] }),
  })
  const answer = () =>
    admin
      .of(ConfigMap, 'default')
      .create({ metadata: { name: 'guarded' } }, { dryRun: true })
      .then(
        () => 'allowed',
        (error: Error) => error.message,
      )
  await eventually(async () => assert.match(await answer(), /no pod of Service default\/guard is ready/))

  await deployments().create(deployment('guard', [container], { replicas: 2, volumes }))
  const names = (await readyPods(plane, 'guard', 2)).map(({ metadata }) => metadata.name!)
  const seen = new Set<string>()
  await eventually(async () => {
    const refused = /refused by (\S+)/.exec(await answer())?.[1]
    if (refused) seen.add(refused.replace(/[^a-z0-9-]+$/, ''))
    assert.deepEqual([...seen].toSorted(), names.toSorted())
  })
})

test('a runner that comes after another takes its pods up', async () => {
  await deployments().create(deployment('handed-on', [witness]))
  const [before] = await readyPods(plane, 'handed-on')
  const pids = runner.pids('default', before!.metadata.name!)
  await runner.stop()
  assert.equal(existsSync(`/proc/${pids[0]}`), false)
  assert.equal(existsSync(runner.folder), false)

  runner = await startRunner(plane, { clock })
  await eventually(async () => {
    const [pod] = await podsOf(plane, 'app=handed-on')
    assert.equal(pod!.metadata.uid, before!.metadata.uid)
    assert.equal(pod!.status!.containerStatuses![0]!.restartCount, 1)
    assert.ok(await ask(pod!, '/given'))
  })
})

test('R0.3 when the process of a runner is killed, the pods of that runner go with it', async (t) => {
  const script = `
    import { startControlPlane, eventually } from ${JSON.stringify(new URL('../index.ts', import.meta.url).href)}
    import { startRunner, Deployment } from ${JSON.stringify(new URL('index.ts', import.meta.url).href)}
    import { deployment, readyPods, witness } from ${JSON.stringify(new URL('fixture.ts', import.meta.url).href)}
    const plane = await startControlPlane()
    const runner = await startRunner(plane)
    await plane.client().of(Deployment, 'default').create(deployment('doomed', [witness]))
    const [pod] = await readyPods(plane, 'doomed')
    console.log(JSON.stringify({ folder: runner.folder, pids: runner.pids('default', pod.metadata.name) }))
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  for await (const chunk of child.stdout) if ((output += String(chunk)).includes('\n')) break
  const { folder, pids } = JSON.parse(output) as { folder: string; pids: number[] }
  assert.equal(pids.length, 1)
  assert.ok(existsSync(`/proc/${pids[0]}`))

  child.kill('SIGKILL')
  await eventually(() => {
    assert.equal(existsSync(`/proc/${pids[0]}`), false)
    assert.equal(existsSync(folder), false)
  })
})
