import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { mortal } from '../../../testkit/move-cuts.ts'
import type { Bundle, Item } from '../../identities/move/index.ts'
import { ConfigMap, Secret, type Resource } from '../../kube/index.ts'
import { readBundle, writeBundle } from './directory.ts'

const folder = (t: TestContext): string => {
  const path = mkdtempSync(join(tmpdir(), 'lanyard-move-'))
  t.after(() => rmSync(path, { recursive: true }))
  return path
}

const item = (kind: unknown, name: string, content: object): Item => ({
  resource: kind as Resource,
  fate: 'move',
  wave: 0,
  object: { metadata: { namespace: 'team', name, uid: name }, ...content },
})

const bundleOf = (...items: Item[]): Bundle => ({
  origin: 'uid-of-kube-system',
  namespace: 'team',
  labels: {},
  controllerNamespace: 'hub',
  items,
  left: [],
})

const map = (value: string): Item => item(ConfigMap, 'map', { data: { value } })
const open = item(Secret, 'open', { data: { key: 'c2VjcmV0' } })

/** What is in a directory, by those who may read it. */
const namesIn = async (path: string): Promise<string[]> =>
  (await readBundle(path)).items.map(({ object }) => `${object.metadata.name} ${JSON.stringify(object['data'] ?? {})}`)

test('R3.72 R3.73 an export over an earlier one, cut off at any write: it is not read until it is whole, it is written again over what is there, and nothing secret of the earlier one is left', async (t) => {
  const total = await (async () => {
    const path = folder(t)
    await writeBundle(path, bundleOf(map('old'), open), { includeSecrets: true })
    const process = mortal([])
    await writeBundle(path, bundleOf(map('new')), { includeSecrets: false, files: process.files })
    return process.writes()
  })()
  assert.ok(total > 5, `${total} writes`)
  for (let point = 1; point < total; point++) {
    const path = folder(t)
    await writeBundle(path, bundleOf(map('old'), open), { includeSecrets: true })
    const { files } = mortal([], { after: point })
    const run = writeBundle(path, bundleOf(map('new')), { includeSecrets: false, files })
    await assert.rejects(run, /the process is gone/, `point ${point}`)
    // Before the first thing was changed it is the earlier one, and whole.
    const seen = await namesIn(path).catch((error: Error) => error.message)
    const isOld = point === 1
    if (isOld) assert.deepEqual(seen, ['map {"value":"old"}', 'open {"key":"c2VjcmV0"}'])
    else assert.match(String(seen), /is not complete: the export was interrupted/, `point ${point}`)

    await writeBundle(path, bundleOf(map('new')), { includeSecrets: false })
    assert.deepEqual(await namesIn(path), ['map {"value":"new"}'], `point ${point}`)
    assert.doesNotMatch(
      readdirSync(path)
        .map((file) => readFileSync(join(path, file), 'utf8'))
        .join(''),
      /c2VjcmV0/,
    )
  }
})

test('R3.72 an export into an empty directory, cut off at any write, is written again into it; what is somebody else’s is left alone', async (t) => {
  const bundle = bundleOf(map('one'), open)
  for (let point = 1; ; point++) {
    const path = join(folder(t), 'export')
    const process = mortal([], { after: point })
    const end = await writeBundle(path, bundle, { includeSecrets: true, files: process.files }).catch(String)
    if (!process.died()) break
    assert.match(end as string, /the process is gone/)
    await writeBundle(path, bundle, { includeSecrets: true })
    assert.equal((await readBundle(path)).items.length, 2, `point ${point}`)
    assert.deepEqual(readdirSync(path).toSorted(), ['ConfigMap_team_map.yaml', 'Secret_team_open.yaml', 'move.json'])
  }
  const taken = folder(t)
  writeFileSync(join(taken, 'notes'), 'mine')
  await assert.rejects(writeBundle(taken, bundle, { includeSecrets: true }), /is not empty/)
  const other = folder(t)
  await writeBundle(other, { ...bundle, namespace: 'another' }, { includeSecrets: true })
  await assert.rejects(writeBundle(other, bundle, { includeSecrets: true }), /is not empty/)
  assert.deepEqual(readdirSync(taken), ['notes'])
})
