import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { staleFiles, writeFiles } from './generate-crds.ts'

const emptyFolder = async (t: TestContext): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'crds-'))
  t.after(() => rm(folder, { recursive: true }))
  return folder
}

test('R0.33 the CRD files in the repository are those that the definitions give', async () => {
  const check = promisify(execFile)(process.execPath, [join(import.meta.dirname, 'generate-crds.ts'), '--check'])
  assert.equal((await check).stderr, '')
})

test('R0.33 changed, missing and foreign CRD files are named, and brought up to date', async (t) => {
  const folder = await emptyFolder(t)
  const all = await writeFiles(folder)
  assert.ok(all.includes('managedclusters.cluster.open-cluster-management.io.yaml'))
  assert.deepEqual(await staleFiles(folder), [])

  await appendFile(join(folder, all[0]!), '# by hand\n')
  await rm(join(folder, all[1]!))
  await writeFile(join(folder, 'foreign.yaml'), 'a: b\n')
  const stale = [all[0]!, all[1]!, 'foreign.yaml'].sort()
  assert.deepEqual(await staleFiles(folder), stale)

  assert.deepEqual(await writeFiles(folder), stale)
  assert.deepEqual(await staleFiles(folder), [])
})

test('R0.33 a CRD file says where it comes from', async (t) => {
  const folder = await emptyFolder(t)
  const [first] = await writeFiles(folder)
  assert.match(await readFile(join(folder, first!), 'utf8'), /^# Generated from src\/api by `make generate`/)
})
