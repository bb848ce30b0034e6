import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { ConfigMap, Secret } from '../../src/kube/index.ts'
import { eventually, startControlPlane, type ControlPlane } from '../index.ts'
import { jumpingClock } from '../jumping-clock.ts'
import { ask, deployment, podsOf, readyPods, witness, witnessWith } from './fixture.ts'
import { Deployment, startRunner, type Runner } from './index.ts'

let plane: ControlPlane
let runner: Runner
const clock = jumpingClock()
before(async () => {
  plane = await startControlPlane()
  runner = await startRunner(plane, { clock, env: { FROM_THE_RUNNER: 'yes' } })
})
after(async () => {
  await runner?.stop()
  await plane?.stop()
})

interface Given {
  args: string[]
  env: Record<string, string>
  cwd: string
  started: number
}
const deployments = () => plane.client().of(Deployment, 'default')
const alive = (pid: number): boolean => existsSync(`/proc/${pid}`)

test('a Deployment becomes processes with their words, variables and an address each, and its status says so', async () => {
  const container = {
    ...witness,
    args: ['--name=$(WHO)'],
    env: [
      ...witness.env!,
      { name: 'WHO', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'ACCOUNT', valueFrom: { fieldRef: { fieldPath: 'spec.serviceAccountName' } } },
      { name: 'GREETING', value: 'hello $(WHO) $$(WHO) $(NOBODY)' },
    ],
  }
  await deployments().create(deployment('words', [container], { replicas: 2 }))
  const pods = await readyPods(plane, 'words', 2)

  const given = await Promise.all(pods.map((pod) => ask<Given>(pod, '/given')))
  for (const [index, { args, env }] of given.entries()) {
    const { name } = pods[index]!.metadata
    assert.deepEqual(args, [`--name=${name}`])
    assert.equal(env['GREETING'], `hello ${name} $(WHO) $(NOBODY)`)
    assert.equal(env['ACCOUNT'], 'default')
    assert.equal(env['HOSTNAME'], name)
    assert.equal(env['FROM_THE_RUNNER'], 'yes')
    assert.match(env['POD_IP']!, /^127\./)
  }
  assert.equal(new Set(given.map(({ env }) => env['POD_IP'])).size, 2)
  const { status, metadata } = await eventually(async () => {
    const seen = await deployments().get('words')
    return seen.status?.availableReplicas === 2 && seen
  })
  const { conditions, ...counts } = status!
  assert.deepEqual(counts, {
    observedGeneration: metadata.generation,
    replicas: 2,
    updatedReplicas: 2,
    readyReplicas: 2,
    availableReplicas: 2,
    terminatingReplicas: 0,
  })
  const found = conditions!.map(({ type, status: is }) => `${type}=${is}`).toSorted()
  assert.deepEqual(found, ['Available=True', 'Progressing=True'])
})

test('a container is ready when its probe says so, and not before', async () => {
  await deployments().create(deployment('slow', [witnessWith({ READY: 'no' })]))
  const pod = await eventually(async () => {
    const [one] = await podsOf(plane, 'app=slow')
    return one?.status?.phase === 'Running' && one
  })
  await eventually(() => ask(pod, '/given'))
  assert.equal((await deployments().get('slow')).status?.readyReplicas, undefined)
  const [seen] = await podsOf(plane, 'app=slow')
  const ready = seen!.status!.conditions!.find(({ type }) => type === 'Ready')
  assert.deepEqual(
    { status: ready!.status, message: ready!.message },
    { status: 'False', message: 'containers with unready status: [witness]' },
  )

  await ask(pod, '/become-ready')
  await readyPods(plane, 'slow')
})

test('mounted Secrets and ConfigMaps appear as files, change all at once, and hold up the start while they are missing', async () => {
  const admin = plane.client()
  const mounts = [
    { name: 'secret', mountPath: '/etc/secret' },
    { name: 'both', mountPath: '/etc/both', readOnly: true },
    { name: 'scratch', mountPath: '/scratch' },
  ]
  const volumes = [
    { name: 'secret', secret: { secretName: 'late' } },
    {
      name: 'both',
      projected: {
        sources: [
          { configMap: { name: 'settings', items: [{ key: 'a', path: 'deep/a.txt' }] } },
          { secret: { name: 'never', optional: true } },
          { downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
        ],
      },
    },
    { name: 'scratch', emptyDir: {} },
  ]
  const container = witnessWith(
    { FILE: '/etc/secret/key', OTHER: '/etc/secretive' },
    { args: ['--config=/etc/both/deep/a.txt', '--elsewhere=/opt/etc/secret'], volumeMounts: mounts },
  )
  await admin.of(ConfigMap, 'default').create({ metadata: { name: 'settings' }, data: { a: '1', b: '2' } })
  await deployments().create(deployment('files', [container], { volumes }))
  await eventually(async () => {
    const [waits] = await podsOf(plane, 'app=files')
    const message = waits?.status?.containerStatuses?.[0]?.state.waiting?.message
    assert.match(message ?? 'none', /volume "secret": secret "late" not found/)
  })
  const data = (text: string) => ({
    key: Buffer.from(text).toString('base64'),
    twin: Buffer.from(text).toString('base64'),
  })
  await admin.of(Secret, 'default').create({ metadata: { name: 'late' }, data: data('one') })
  const [pod] = await readyPods(plane, 'files')

  const { args, env, cwd } = await ask<Given>(pod!, '/given')
  assert.deepEqual(args, [`--config=${cwd}/etc/both/deep/a.txt`, '--elsewhere=/opt/etc/secret'])
  assert.equal(env['OTHER'], '/etc/secretive')
  const file = env['FILE']!
  assert.equal(readFileSync(file, 'utf8'), 'one')
  assert.equal(readFileSync(join(cwd, 'etc/both/deep/a.txt'), 'utf8'), '1')
  assert.match(readFileSync(join(cwd, 'etc/both/labels'), 'utf8'), /^app="files"$/m)
  assert.ok(existsSync(join(cwd, 'scratch')))
  assert.equal(existsSync(join(cwd, 'etc/both/b')), false)

  await admin.of(Secret, 'default').patch('late', { merge: { data: data('two') } })
  await eventually(() => {
    // Whoever reads between two looks sees one generation: both files lead through the same link.
    const twins = [file, file.replace('key', 'twin')].map((path) => readFileSync(path, 'utf8'))
    assert.deepEqual(twins, ['two', 'two'])
  })
  assert.equal((await podsOf(plane, 'app=files'))[0]!.metadata.uid, pod!.metadata.uid, 'without a restart')
})

test('what ends is started again, at once and then later and later, and shows as CrashLoopBackOff', async () => {
  await deployments().create(deployment('crash', [witness]))
  const [pod] = await readyPods(plane, 'crash')
  const state = async () => (await podsOf(plane, 'app=crash'))[0]!.status!.containerStatuses![0]!
  const restarted = (count: number) =>
    eventually(
      async () => {
        const seen = await state()
        assert.equal(seen.restartCount, count)
        assert.ok(seen.ready)
        return seen
      },
      { timeoutMs: 60_000 },
    )

  await ask(pod!, '/exit?code=3')
  const first = await restarted(1)
  assert.equal(first.lastState.terminated?.exitCode, 3)
  await ask(pod!, '/exit?code=0')
  const waiting = await eventually(async () => (await state()).state.waiting ?? false)
  assert.equal(waiting.reason, 'CrashLoopBackOff')
  assert.match(waiting.message!, /back-off 10s/)
  assert.deepEqual(runner.pids('default', pod!.metadata.name!), [])

  clock.jump(10_000)
  await restarted(2)
})

test('a pod that goes gets SIGTERM and its grace, then SIGKILL, and nothing of it stays', async () => {
  const left = join(plane.folder, 'polite-left')
  await deployments().create(deployment('polite', [witnessWith({ LEAVES: left })]))
  await deployments().create(
    deployment('stubborn', [witnessWith({ STUBBORN: 'yes' })], { terminationGracePeriodSeconds: 2 }),
  )
  const [polite] = await readyPods(plane, 'polite')
  const [stubborn] = await readyPods(plane, 'stubborn')
  const pids = [polite!, stubborn!].flatMap((pod) => runner.pids('default', pod.metadata.name!))
  assert.equal(pids.length, 2)

  await Promise.all(['polite', 'stubborn'].map((name) => deployments().delete(name)))
  await eventually(async () => {
    assert.deepEqual(await podsOf(plane, 'app in (polite,stubborn)'), [])
  })
  assert.match(readFileSync(left, 'utf8'), /^\d+$/, 'it could end as it wanted')
  assert.match(runner.log('default', 'stubborn'), /SIGTERM/)
  for (const pid of pids) assert.equal(alive(pid), false)
})

test('a changed template rolls: with RollingUpdate the new one is ready before the old one goes, with Recreate never both', async () => {
  const change = (name: string) =>
    deployments().patch(name, {
      strategic: {
        spec: { template: { spec: { containers: [{ name: 'witness', env: [{ name: 'V', value: '2' }] }] } } },
      },
    })
  const left = join(plane.folder, 'recreate-left')
  await deployments().create(deployment('roll', [witness]))
  await deployments().create(
    deployment('recreate', [witnessWith({ LEAVES: left })], { strategy: { type: 'Recreate' } }),
  )
  const [old] = await readyPods(plane, 'roll')
  await readyPods(plane, 'recreate')
  const [oldPid] = runner.pids('default', old!.metadata.name!)

  await Promise.all([change('roll'), change('recreate')])
  await eventually(
    async () => {
      if (alive(oldPid!)) return false
      const rolled = (await podsOf(plane, 'app=roll')).find(({ metadata }) => metadata.uid !== old!.metadata.uid)
      assert.ok(rolled?.status?.containerStatuses?.[0]?.ready, 'the old one went before the new one was ready')
      return true
    },
    { timeoutMs: 60_000 },
  )
  const [now] = await readyPods(plane, 'recreate')
  const { env, started } = await ask<Given>(now!, '/given')
  assert.equal(env['V'], '2')
  assert.ok(Number(readFileSync(left, 'utf8')) <= started, 'the new one started while the old one ran')
})

test('kubectl shows the logs', async () => {
  await deployments().create(deployment('talks', [witness]))
  const [pod] = await readyPods(plane, 'talks')
  assert.match(await plane.kubectl(['logs', pod!.metadata.name!]), /^serving on 127\./)
  assert.equal(await plane.kubectl(['logs', pod!.metadata.name!, '--tail=0']), '')
})
