import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { inspect } from 'node:util'
import { stubCa, stubCertificate } from '../../testkit/stub-server.ts'
import type { Credential } from './connection.ts'
import { Pools } from './pools.ts'

const options = { maxConnections: 1, connectTimeoutMs: 1, pingAfterMs: 1, pingTimeoutMs: 1 }
const poolsFor = (t: TestContext): Pools => {
  const connection = { source: 'test', server: 'https://127.0.0.1:1', credentials: async () => ({}) }
  const pools = new Pools(connection, options)
  t.after(() => pools.close())
  return pools
}
const newCredential = (): Credential => ({ ca: stubCa, ...stubCertificate({ usages: ['client'] }) })

test('R0.7 connections are shared for as long as the certificates are the same, whatever the token', (t) => {
  const pools = poolsFor(t)
  const credential = newCredential()
  const pool = pools.enter(credential)
  assert.equal(pools.enter(credential), pool)
  assert.equal(pools.enter({ ...credential, token: 'another' }), pool)
})

test('R0.7 a new certificate, key or CA gets connections of its own; the old ones close when the last has left', (t) => {
  const pools = poolsFor(t)
  const old = pools.enter(newCredential()).enter()
  const fresh = pools.enter(newCredential())

  assert.notEqual(fresh, old)
  old.leave()
  assert.equal(old.closed, false)
  old.leave()
  assert.equal(old.closed, true)
  assert.equal(fresh.closed, false)
})

test('R0.7 connections that nobody uses close at once when the certificate changes', (t) => {
  const pools = poolsFor(t)
  const old = pools.enter(newCredential())
  old.leave()
  pools.enter(newCredential())
  assert.equal(old.closed, true)
})

test('R0.7 somebody who comes late with the old credential does not drive out the new one', (t) => {
  const pools = poolsFor(t)
  const [before, after] = [newCredential(), newCredential()]
  const old = pools.enter(before)
  const fresh = pools.enter(after)

  assert.equal(pools.enter(before), old)
  assert.equal(pools.enter(after), fresh)
  old.leave()
  old.leave()
  assert.equal(old.closed, true)
  assert.notEqual(pools.enter(before), old) // once it is closed, it takes a new one
})

test('a key is not part of the names by which Node keeps connections', (t) => {
  const pool = poolsFor(t).enter(newCredential())
  assert.doesNotMatch(inspect(pool.http1, { depth: 5, showHidden: true }), /PRIVATE KEY/)
})
