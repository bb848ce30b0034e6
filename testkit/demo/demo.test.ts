import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)
const script = (name: string): string => new URL(`${name}.ts`, import.meta.url).pathname

test('R1.45 R1.51 R1.52 the demo tells its story, can tell it again, and leaves nothing behind', async (t) => {
  const folder = join(mkdtempSync(join(tmpdir(), 'lanyard-demo-')), 'demo')
  const env = { ...process.env, LANYARD_DEMO: folder }
  t.after(() => run(process.execPath, [script('down')], { env }))

  const first = await run(process.execPath, [script('up')], { env })
  assert.match(first.stdout, /paris +true .*True +True/, 'accepted, joined and available')
  assert.match(first.stdout, /\["get","list"\][^]*delete[^]*\["get","list"\]/, 'delivered, changed and repaired')
  const again = await run(process.execPath, [script('up')], { env })
  assert.match(again.stdout, /^the demo runs already/)
  const end = await run(process.execPath, [script('down')], { env })
  assert.match(end.stdout, /the demo has ended/)
  assert.equal(existsSync(folder), false)
})
