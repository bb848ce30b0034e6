import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { eventually } from '../eventually.ts'
import { demoPlace } from './place.ts'

const run = promisify(execFile)
const script = (name: string): string => new URL(`${name}.ts`, import.meta.url).pathname

test('R1.45 R1.51 R1.52 R2.39 the demo sets up a fleet with the commands, recovers from being killed half-way, says when it is up, and leaves nothing behind', async (t) => {
  const folder = join(mkdtempSync(join(tmpdir(), 'lanyard-demo-')), 'demo')
  const env = { ...process.env, LANYARD_DEMO: folder }
  const place = demoPlace(folder)
  t.after(async () => {
    await run(process.execPath, [script('down')], { env })
    rmSync(dirname(folder), { recursive: true })
  })
  const half = spawn(process.execPath, [script('up')], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const chunk of half.stdout) if (String(chunk).includes('$ clusteradm init')) break
  half.kill('SIGKILL')
  const first = Number(readFileSync(place.pid, 'utf8'))

  const { stdout } = await run(process.execPath, [script('up')], { env })
  assert.match(stdout, /^An unfinished demo was running; it has been removed/)
  assert.equal(existsSync(`/proc/${first}`), false)
  for (const name of ['paris', 'tokyo']) {
    assert.match(stdout, new RegExp(`^${name} +true +true +True `, 'm'), 'accepted, joined and available')
    assert.match(stdout, new RegExp(`^rbac +${name} +1 +True +True `, 'm'), 'the work is applied and available')
  }
  assert.match(stdout, /\["get","list"\][^]*delete[^]*\["get","list"\]/, 'delivered, changed and repaired')
  for (const name of ['paris', 'tokyo'])
    assert.match(stdout, new RegExp(`^hello +${name} +True `, 'm'), 'the example add-on is there')
  assert.match(stdout, /\nHello, paris\n/)
  assert.match(stdout, /\nsystem:open-cluster-management:cluster:paris:addon:hello:agent:hello\n/)
  assert.match(
    stdout,
    /configmap\/report created\n[^]*get secrets [^]*\nno\n[^]*get configmaps [^]*\nno\n/,
    'its own, and no more',
  )
  assert.doesNotMatch(stdout, /eyJ[\w-]+\.[\w-]+\./, 'a whole token')
  assert.match(stdout, /Try next:\n[^]*make demo-down\n$/)
  const again = await run(process.execPath, [script('up')], { env })
  assert.match(again.stdout, /^The demo is up\.\n\nTry next:/)

  const server = Number(readFileSync(place.pid, 'utf8'))
  const children = [...childrenOf(server), Number(readFileSync(place.addOn, 'utf8'))]
  assert.ok(
    children.length >= 3 * 3 + 6 + 1,
    `three control planes, six pods and an add-on, not ${children.length} processes`,
  )
  process.kill(server, 'SIGKILL')
  await run(process.execPath, [script('down')], { env })
  assert.equal(existsSync(folder), false)
  await eventually(() => {
    assert.deepEqual(
      children.filter((pid) => existsSync(`/proc/${pid}`)),
      [],
    )
  })
})

const childrenOf = (parent: number): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return new RegExp(`^PPid:\\s+${parent}$`, 'm').test(readFileSync(`/proc/${pid}/status`, 'utf8'))
      } catch {
        return false // it has ended in the meantime
      }
    })
