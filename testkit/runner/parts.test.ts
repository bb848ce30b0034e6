import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { AtomicFolder } from './atomic-folder.ts'
import { backoffMs } from './container-life.ts'
import { ContainerRoot } from './container-root.ts'
import { expand } from './expand.ts'
import type { ContainerState, ContainerStatus, EndpointSlice, Pod, Service } from './kinds.ts'
import { targetOf } from './network.ts'
import { podStatus } from './pod-status.ts'
import { programOf } from './programs.ts'

const folderOf = (t: TestContext): string => {
  const folder = mkdtempSync(join(tmpdir(), 'lanyard-parts-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}
const files = (of: Record<string, string>) =>
  new Map(Object.entries(of).map(([path, text]) => [path, Buffer.from(text)]))

test('variables are expanded as Kubernetes does it', () => {
  const cases: [string, string][] = [
    ['$(A)', '1'],
    ['x$(A)y$(B)', 'x1y2'],
    ['$$(A)', '$(A)'],
    ['$$$(A)', '$1'],
    ['$(C)', '$(C)'],
    ['$(A', '$(A'],
    ['$A ${A} $', '$A ${A} $'],
  ]
  for (const [text, wanted] of cases) assert.equal(expand(text, { A: '1', B: '2' }), wanted, text)
})

test('the files of a volume change by one rename, and what has gone is gone', (t) => {
  const folder = new AtomicFolder(join(folderOf(t), 'volume'))
  folder.write(files({ a: '1', 'deep/b': '1', old: '1' }))
  const data = join(folder.path, '..data')
  const first = readlinkSync(data)
  folder.write(files({ a: '1', 'deep/b': '1', old: '1' }))
  assert.equal(readlinkSync(data), first, 'nothing differed')

  folder.write(files({ a: '2', 'deep/b': '2', new: '2' }))
  assert.notEqual(readlinkSync(data), first)
  assert.equal(readFileSync(join(folder.path, 'a'), 'utf8'), '2')
  assert.equal(readFileSync(join(folder.path, 'deep/b'), 'utf8'), '2')
  const visible = readdirSync(folder.path).filter((name) => !name.startsWith('..'))
  assert.deepEqual(visible.toSorted(), ['a', 'deep', 'new'])
  assert.equal(readdirSync(folder.path).length, 5, 'the folder of the first files is removed')
  assert.throws(() => folder.write(files({ '../out': 'x' })), /leads out of the volume/)
})

test('mount paths are led to the root of the container wherever they are named, and nothing else is', (t) => {
  const path = join(folderOf(t), 'root')
  const volumeMounts = [{ name: 'v', mountPath: '/spoke/hub/' }]
  const root = new ContainerRoot(path, { name: 'c', volumeMounts }, () => '/nowhere')
  const cases: [string, string][] = [
    ['/spoke/hub/kubeconfig', `${path}/spoke/hub/kubeconfig`],
    ['--a=/spoke/hub', `--a=${path}/spoke/hub`],
    ['/spoke/hub:/spoke/hub/b', `${path}/spoke/hub:${path}/spoke/hub/b`],
    ['/spoke/hubs', '/spoke/hubs'],
    ['/opt/spoke/hub', '/opt/spoke/hub'],
    ['/spoke', '/spoke'],
  ]
  for (const [text, wanted] of cases) assert.equal(root.map(text), wanted)
})

test('a command means a program by its last element, and an image without a command by its name', () => {
  const programs = { lanyard: '/checkout/bin/lanyard' }
  assert.equal(programOf(programs, 'lanyard', { name: 'c' }), '/checkout/bin/lanyard')
  assert.equal(programOf(programs, '/usr/bin/lanyard', { name: 'c' }), '/checkout/bin/lanyard')
  assert.equal(programOf(programs, '/bin/sh', { name: 'c' }), '/bin/sh')
  assert.equal(programOf(programs, '', { name: 'c', image: 'example.com:5000/x/lanyard:1.0' }), '/checkout/bin/lanyard')
  assert.throws(() => programOf(programs, '', { name: 'c', image: 'nginx' }), /no program is known for image nginx/)
})

test('the first restart is at once; then ten seconds, doubling, five minutes at most', () => {
  assert.deepEqual([0, 1, 2, 3, 6, 60].map(backoffMs), [0, 10_000, 20_000, 40_000, 300_000, 300_000])
})

const at = '2026-01-01T00:00:00Z'
const ended = (exitCode: number): ContainerState => ({
  terminated: { exitCode, reason: 'x', startedAt: at, finishedAt: at },
})
const running: ContainerState = { running: { startedAt: at } }
const waiting: ContainerState = { waiting: { reason: 'ContainerCreating' } }
const statusOf = (state: ContainerState): ContainerStatus => ({
  name: 'c',
  image: '',
  imageID: '',
  ready: state === running,
  started: state === running,
  restartCount: 0,
  state,
  lastState: {},
})

test('the phase of a pod follows its containers, its policy and whether it is leaving', () => {
  const phase = (states: ContainerState[], spec: Partial<Pod['spec']> = {}, leaving = false) =>
    podStatus({
      pod: { metadata: { ...(leaving && { deletionTimestamp: at }) }, spec: { containers: [], ...spec } },
      before: {},
      initContainers: [],
      containers: states.map(statusOf),
      podIP: '10.1.2.3',
      now: 0,
    }).phase
  assert.equal(phase([waiting]), 'Pending')
  assert.equal(phase([running, waiting]), 'Pending')
  assert.equal(phase([running, ended(1)]), 'Running')
  assert.equal(phase([ended(0)]), 'Running', 'it will be started again')
  assert.equal(phase([ended(0)], { restartPolicy: 'Never' }), 'Succeeded')
  assert.equal(phase([ended(0), ended(2)], { restartPolicy: 'Never' }), 'Failed')
  assert.equal(phase([ended(2)], { restartPolicy: 'OnFailure' }), 'Running')
  assert.equal(phase([ended(0)], { restartPolicy: 'OnFailure' }), 'Succeeded')
  assert.equal(phase([ended(0)], {}, true), 'Succeeded')
})

test('a condition keeps its time until its status changes', () => {
  const facts = { pod: { metadata: {}, spec: { containers: [] } }, initContainers: [], podIP: '10.1.2.3' }
  const first = podStatus({ ...facts, before: {}, containers: [statusOf(waiting)], now: 0 })
  const second = podStatus({ ...facts, before: first, containers: [statusOf(running)], now: 60_000 })
  const times = (type: string) =>
    [first, second].map((s) => s.conditions!.find((c) => c.type === type)!.lastTransitionTime)
  assert.equal(times('PodScheduled')[0], times('PodScheduled')[1])
  assert.notEqual(times('Ready')[0], times('Ready')[1])
  assert.equal(second.startTime, first.startTime)
})

test('an address of a Service leads to its ready pods in turn, by the port of that name', () => {
  const service: Service = {
    metadata: { name: 's', namespace: 'n' },
    spec: {
      clusterIP: '10.0.0.7',
      ports: [
        { name: 'web', port: 443, targetPort: 9443 },
        { name: 'health', port: 80 },
      ],
    },
  }
  const slice: EndpointSlice = {
    metadata: {},
    ports: [
      { name: 'health', port: 8000 },
      { name: 'web', port: 9443 },
    ],
    endpoints: [
      { addresses: ['10.9.9.2'], conditions: { ready: true } },
      { addresses: ['10.9.9.3'], conditions: { ready: false } },
      { addresses: ['10.9.9.4'], conditions: { ready: true } },
    ],
  }
  const routes = (slices: EndpointSlice[]) => ({
    serviceByIP: (ip: string) => (ip === '10.0.0.7' ? service : undefined),
    slicesOf: () => slices,
  })
  const to = (port: number, turn: number) => targetOf(routes([slice]), '10.0.0.7', port, turn)
  assert.deepEqual(to(443, 0), { host: '127.9.9.2', port: 9443 })
  assert.deepEqual(to(443, 1), { host: '127.9.9.4', port: 9443 })
  assert.deepEqual(to(80, 2), { host: '127.9.9.2', port: 8000 })
  assert.deepEqual(targetOf(routes([]), '10.9.9.1', 10_250), { host: '127.9.9.1', port: 10_250 })
  assert.throws(() => to(8080, 0), /Service n\/s has no port 8080/)
  assert.throws(() => targetOf(routes([]), '10.0.0.7', 443), /no pod of Service n\/s is ready/)
})
