import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, readdir, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { systemClock } from '../../runtime/index.ts'
import { CliError } from '../errors.ts'
import { throughCache, usable, type CacheOptions, type ReadToken } from './cache.ts'
import { thisProcess, tryLock } from './lock.ts'

const minute = 60_000
const freshMs = minute
const key = 'a'.repeat(64)

const place = async (t: TestContext): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'lanyard-cache-'))
  t.after(() => rm(folder, { recursive: true }))
  return join(folder, 'tokens', key)
}

/** A hub that counts how often it is asked, and a clock that stands still until it is told the time. */
const scene = async (t: TestContext) => {
  const file = await place(t)
  const state = {
    now: Date.now(),
    reads: 0,
    outages: 0,
    answer: (): ReadToken => ({ token: `t${state.reads}`, expiresAt: state.now + 60 * minute }),
  }
  const options: CacheOptions = {
    file,
    freshMs,
    clock: { ...systemClock, now: () => state.now },
    isOutage: async (error) => (error as Error).message === 'no answer',
    onOutage: () => state.outages++,
  }
  const read = async (): Promise<ReadToken> => {
    state.reads++
    await new Promise((resolve) => setImmediate(resolve))
    return state.answer()
  }
  return { file, state, options, get: () => throughCache(options, read) }
}
const fails = (error: Error) => (): never => {
  throw error
}

test('R5.28 many who want a token at once make one read, and the file is for its owner alone', async (t) => {
  const { file, state, get } = await scene(t)
  const found = await Promise.all(Array.from({ length: 30 }, get))
  assert.deepEqual(new Set(found.map(({ token }) => token)), new Set(['t1']))
  assert.equal(state.reads, 1)
  assert.equal((await stat(file)).mode & 0o777, 0o600)
  assert.equal((await stat(dirname(file))).mode & 0o777, 0o700)
  assert.deepEqual(await readdir(dirname(file)), [key], 'no lock and no draft is left')
})

test('R5.28 a token is asked for anew after a minute, near its end, and when the clock was set back', () => {
  const now = 1_800_000_000_000
  const entry = { token: 't', readAt: now, expiresAt: now + 60 * minute }
  const at = (ms: number, more = {}) => usable({ ...entry, ...more }, now + ms, freshMs)?.token
  assert.equal(at(0), 't')
  assert.equal(at(freshMs - 1), 't')
  assert.equal(at(freshMs), undefined)
  assert.equal(at(-1), undefined)
  assert.equal(at(0, { expiresAt: now + 59_000 }), undefined)
  assert.equal(at(0, { expiresAt: undefined }), 't')
  assert.equal(at(freshMs, { retryAt: now + freshMs + 1 }), 't')
  assert.equal(at(freshMs, { retryAt: now + freshMs * 9 }), undefined, 'nobody can set it far ahead')
  assert.equal(at(freshMs, { retryAt: now + freshMs + 1, expiresAt: now + freshMs }), undefined, 'it has ended')
  assert.equal(at(0, { token: undefined }), undefined)
  assert.equal(usable(undefined, now, freshMs), undefined)
})

test('R5.28 a token that was rotated or has expired is noticed', async (t) => {
  const { state, get } = await scene(t)
  assert.equal((await get()).token, 't1')
  state.now += freshMs - 1
  assert.equal((await get()).token, 't1')
  state.now += 1
  assert.equal((await get()).token, 't2')
  state.now += 61 * minute
  assert.equal((await get()).token, 't3')
})

test('R5.28 those who waited for a read that failed share its refusal; whoever comes later asks again', async (t) => {
  const { file, state, get } = await scene(t)
  const good = state.answer
  state.answer = fails(new CliError('you may not', { next: 'ask somebody' }))
  const results = await Promise.allSettled(Array.from({ length: 10 }, get))
  assert.equal(state.reads, 1)
  for (const one of results) {
    assert.ok(one.status === 'rejected')
    const { message, next } = one.reason as CliError
    assert.deepEqual({ message, next }, { message: 'you may not', next: 'ask somebody' })
  }
  state.now += 1
  state.answer = good
  assert.equal((await get()).token, 't2')

  // A right that was taken away takes the token out of the file as well.
  state.now += freshMs
  state.answer = fails(new CliError('you may not any more'))
  await assert.rejects(get(), /any more/)
  assert.ok(!(await readFile(file, 'utf8')).includes('t2'))
})

test('R5.28 while the hub does not answer, the token from before is used until it ends', async (t) => {
  const { state, get } = await scene(t)
  await get()
  state.now += freshMs
  state.answer = fails(new Error('no answer'))
  assert.equal((await get()).token, 't1')
  assert.deepEqual([state.reads, state.outages], [2, 1])
  state.now += 9_999
  assert.equal((await get()).token, 't1')
  assert.equal(state.reads, 2, 'for ten seconds the hub is left alone')
  state.now += 1
  await get()
  assert.equal(state.reads, 3)
  state.now += 60 * minute
  await assert.rejects(get(), /no answer/)
})

test('R5.28 what others could have written or read is not used', async (t) => {
  const { file, state, get } = await scene(t)
  await get()
  const planted = JSON.stringify({ token: 'planted', readAt: state.now })
  const elsewhere = `${dirname(file)}/elsewhere`
  await writeFile(elsewhere, planted, { mode: 0o600 })
  for (const plant of [
    () => writeFile(file, planted, { mode: 0o600 }).then(() => chmod(file, 0o644)),
    () => symlink(elsewhere, file),
    () => writeFile(file, 'not JSON', { mode: 0o600 }),
    () => writeFile(file, JSON.stringify({ token: 7, readAt: state.now }), { mode: 0o600 }),
  ]) {
    await rm(file)
    await plant()
    const { reads } = state
    assert.equal((await get()).token, `t${reads + 1}`)
    assert.equal((await stat(file)).mode & 0o777, 0o600)
  }
  await chmod(dirname(file), 0o777)
  const { reads } = state
  assert.equal((await get()).token, `t${reads + 1}`, 'a folder that all can write to is no cache')
})

test('R5.28 a process that died with the lock holds nobody up; one that lives, or is elsewhere, is waited for', async (t) => {
  const { file, state, get } = await scene(t)
  await get()
  state.now += freshMs
  const child = spawn('true')
  await once(child, 'exit')
  const lock = `${file}.lock`
  const holder = { id: 'x', pid: child.pid, host: thisProcess().host }
  await writeFile(lock, JSON.stringify(holder))
  assert.equal((await get()).token, 't2')
  await assert.rejects(stat(lock), /ENOENT/)

  const options = { self: thisProcess(), now: () => state.now }
  for (const lives of [
    { ...holder, pid: process.pid },
    { ...holder, host: 'another' },
  ]) {
    await writeFile(lock, JSON.stringify(lives))
    await utimes(lock, state.now / 1000, state.now / 1000)
    const later = (ms: number) => ({ ...options, now: () => state.now + ms })
    assert.equal(await tryLock(lock, later(119_000)), undefined)
    assert.ok(await readFile(lock, 'utf8'))
    assert.equal(await tryLock(lock, later(121_000)), undefined, 'it takes the lock away')
    const unlock = await tryLock(lock, later(121_000))
    assert.ok(unlock, 'and whoever is first has it then')
    await unlock()
  }
})
