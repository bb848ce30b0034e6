import assert from 'node:assert/strict'
import { test } from 'node:test'
import { violations } from './check-rooms.ts'

const of = (file: string, ...specifiers: string[]): string[] =>
  violations(file, specifiers.map((s) => `import { x } from '${s}'`).join('\n'))

test('a room may import the rooms below it, by their doors', () => {
  assert.deepEqual(of('src/runtime/queue.ts', './clock.ts', '../kube/index.ts', 'node:fs', 'yaml'), [])
  assert.deepEqual(of('src/work/hub/deliver.ts', '../../registration/contract.ts', '../../api/index.ts'), [])
  assert.deepEqual(of('src/main/hub.ts', '../registration/hub/index.ts'), [])
})

test('kube/ knows nothing of the product', () => {
  assert.match(of('src/kube/client.ts', '../runtime/index.ts')[0]!, /kube\/ may not import runtime\//)
  assert.match(of('src/runtime/queue.ts', '../api/index.ts')[0]!, /runtime\/ may not import api\//)
})

test('the insides of another room are closed', () => {
  assert.match(of('src/runtime/queue.ts', '../kube/transport.ts')[0]!, /insides of kube/)
  assert.match(of('src/work/hub/x.ts', '../../registration/hub/index.ts')[0]!, /work\/ may not import registration\//)
})

test('shipped code does not use the testkit; tests do', () => {
  assert.match(of('src/kube/client.ts', '../../testkit/index.ts')[0]!, /shipped code/)
  assert.deepEqual(of('src/kube/client.test.ts', '../../testkit/index.ts', '../runtime/pki/index.ts'), [])
})

test('imports over several lines and lazy ones count', () => {
  const source = "import {\n  a,\n} from '../runtime/index.ts'\nconst x = await import('../api/index.ts')"
  assert.equal(violations('src/kube/client.ts', source).length, 2)
})
