import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { eventually, rounds, startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import { Lease } from '../kube/index.ts'

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane({ controllerManager: false, audit: false })
})
after(() => plane.stop())

const program = new URL('../../testkit/programs/candidate.ts', import.meta.url).pathname

/** Replicas of one program, and what they noted of their time in the lead. */
const replicas = (t: TestContext, leaseMs: number) => {
  const notes = join(plane.folder, `notes-${Math.random().toString(36).slice(2)}`)
  const children = new Map<string, ChildProcess>()
  t.after(async () => {
    for (const child of children.values()) child.kill('SIGKILL')
    await plane.client().of(Lease, 'default').delete('test-lead')
  })
  const read = (): { at: bigint; who: string; what: string }[] => {
    const lines = (() => {
      try {
        return readFileSync(notes, 'utf8').trim().split('\n')
      } catch {
        return []
      }
    })()
    return lines.filter(Boolean).map((line) => {
      const [at, who, ...what] = line.split(' ')
      return { at: BigInt(at!), who: who!, what: what.join(' ') }
    })
  }
  let serial = 0
  return {
    start: (): string => {
      const who = `replica-${++serial}`
      const args = [program, plane.kubeconfig, who, notes, String(leaseMs)]
      children.set(who, spawn(process.execPath, args, { stdio: 'inherit' }))
      return who
    },
    signal: (who: string, signal: NodeJS.Signals): void => void children.get(who)!.kill(signal),
    exited: (who: string): Promise<unknown> =>
      new Promise((resolve) => {
        const child = children.get(who)!
        if (child.exitCode !== null || child.signalCode !== null) resolve(child.exitCode)
        else child.once('exit', resolve)
      }),
    read,
    /** Between the last note of whoever led before and the first of this one. */
    gapMs: (leader: string): bigint => {
      const leads = read().filter((n) => n.what === 'leads')
      const first = leads.findIndex((n) => n.who === leader)
      return (leads[first]!.at - leads[first - 1]!.at) / 1_000_000n
    },
    /** Waits until somebody else leads. */
    nextLeader: (not?: string): Promise<string> =>
      eventually(async () => {
        const last = read().findLast((n) => n.what === 'leads')
        assert.ok(last && last.who !== not, `the last to lead is ${last?.who ?? 'nobody'}`)
        return last.who
      }),
  }
}

/** From the notes of all sides: once somebody begins to lead, nobody who led before ever leads again. */
const assertNeverTwo = (notes: { at: bigint; who: string; what: string }[]): void => {
  const inOrder = notes.filter((n) => n.what === 'leads').toSorted((a, b) => (a.at < b.at ? -1 : 1))
  const reigns: string[] = []
  for (const { who } of inOrder) if (reigns.at(-1) !== who) reigns.push(who)
  assert.deepEqual(reigns, [...new Set(reigns)], 'two led at once: their notes alternate')
}

test('R0.25 R0.24 the leader is killed: the other one leads when the lease has run out, and never do two lead at once', async (t) => {
  const group = replicas(t, 3000)
  group.start()
  let leader = await group.nextLeader()
  for (let round = 0; round < rounds(3); round++) {
    group.start()
    await eventually(async () => assert.ok(await leaseHolder()))
    group.signal(leader, 'SIGKILL')
    await group.exited(leader)
    leader = await group.nextLeader(leader)
    t.diagnostic(`took over ${group.gapMs(leader)} ms after the last sign of the old leader; the lease is 3000 ms`)
  }
  assertNeverTwo(group.read())
})

test('R0.24 a leader that was paused for longer than its lease does not lead again when it wakes up', async (t) => {
  const group = replicas(t, 2000)
  const first = group.start()
  await group.nextLeader()
  group.start()
  group.signal(first, 'SIGSTOP')
  await group.nextLeader(first)
  group.signal(first, 'SIGCONT')
  assert.equal(await group.exited(first), 3, 'it ends with an error, so that it is restarted')
  assert.match(group.read().findLast((n) => n.who === first)!.what, /^lost: /)
  assertNeverTwo(group.read())
})

test('R0.25 R0.21 a leader that stops gracefully hands over at once, however long its lease', async (t) => {
  const group = replicas(t, 600_000)
  const first = group.start()
  await group.nextLeader()
  const second = group.start()
  group.signal(first, 'SIGTERM')
  assert.equal(await group.exited(first), 0)
  assert.equal(await group.nextLeader(first), second)
  assertNeverTwo(group.read())
})

test('R0.24 a leader that cannot reach the API server stops leading before another could start', async (t) => {
  const group = replicas(t, 3000)
  const first = group.start()
  await group.nextLeader()
  plane.apiServer.pause()
  assert.equal(await group.exited(first), 3)
  plane.apiServer.resume()
  const second = group.start()
  assert.equal(await group.nextLeader(first), second)
  assertNeverTwo(group.read())
})

const leaseHolder = async (): Promise<string | undefined> =>
  (await plane.client().of(Lease, 'default').find('test-lead'))?.spec.holderIdentity
