import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Component, keptFolder, removeKeptFolder } from './index.ts'
import { PortTaken, withFreePorts } from './ports.ts'

/** A shell script as a component, in a folder of the test's own. */
const script = (t: TestContext, text: string, ready: () => Promise<boolean>, readyWithinMs?: number): Component => {
  const folder = keptFolder('component-test')
  const options = { binary: '/bin/bash', args: ['-c', text], folder, ready }
  const component = new Component(readyWithinMs === undefined ? options : { ...options, readyWithinMs })
  t.after(async () => {
    await component.kill()
    removeKeptFolder(folder)
  })
  return component
}
const never = async () => false
const always = async () => true

test('a program that ends before it is ready fails with its exit code and the end of its log', async (t) => {
  const component = script(t, 'for i in {1..30}; do echo line $i; done; exit 3', never)
  await assert.rejects(component.start(), (error: Error) => {
    assert.match(error.message, /^bash did not start: exit code 3; the end of its log:\nline 11\n[^]*line 30$/)
    return true
  })
})

test('a program that never gets ready fails with the end of its log', async (t) => {
  const component = script(t, 'echo still thinking; exec sleep 1000', never, 200)
  await assert.rejects(component.start(), /^Error: bash not ready within 0.2 s; the end of its log:\nstill thinking$/)
})

test('a program that is missing says so', async () => {
  const folder = keptFolder('component-test')
  const component = new Component({ binary: '/nowhere/thing', args: [], folder, ready: never })
  await assert.rejects(component.start(), /thing did not start: spawn \/nowhere\/thing ENOENT/)
  removeKeptFolder(folder)
})

test('a port that somebody took is tried again with another one, not forever', async (t) => {
  const taken = () => script(t, 'echo "listen tcp 127.0.0.1:1: bind: address already in use"; exit 1', never).start()
  let attempts = 0
  const second = await withFreePorts(async () => (++attempts === 1 ? taken() : 'second'))
  assert.equal(second, 'second')
  await assert.rejects(withFreePorts(taken), PortTaken)
  await assert.rejects(
    withFreePorts(async () => {
      attempts++
      throw new Error('other')
    }),
    /other/,
  )
  assert.equal(attempts, 3)
})

test('a paused program can be stopped, and kill and stop are fine on one that has ended', async (t) => {
  const component = script(t, 'trap "exit 0" TERM; while true; do sleep 0.05; done', always)
  await component.start()
  await assert.rejects(component.start(), /running already/)
  component.pause()
  await component.stop()
  assert.equal(component.running, false)
  await component.stop()
  await component.kill()
  assert.equal(component.pid, undefined)
})
