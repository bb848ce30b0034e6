import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../../../testkit/index.ts'
import { code, GrpcError } from '../../../../events/index.ts'
import { clustersOf } from './identity.ts'
import { ClientLimits } from './limits.ts'
import { Remembered } from './remembered.ts'
import { Turns } from './turns.ts'

const limits = { publishesPerSecond: 10, publishBurst: 20, publishesUnderWay: 3, subscriptions: 2 }
const isExhausted = (error: unknown): boolean => error instanceof GrpcError && error.code === code.resourceExhausted

test('R6.5 a client has a burst and then its rate, so many calls and subscriptions at once, and nobody pays for another', () => {
  const clock = manualClock()
  const of = new ClientLimits(limits, clock)
  const spend = (client: string): number => {
    for (let spent = 0; ; spent++) {
      try {
        of.enter(client, 'publish')()
      } catch (error) {
        assert.ok(isExhausted(error))
        return spent
      }
    }
  }
  assert.deepEqual([spend('a'), spend('a'), spend('b')], [20, 0, 20])
  clock.advance(500)
  assert.equal(spend('a'), 5)
  clock.advance(60_000)
  const [leave] = [of.enter('a', 'publish'), of.enter('a', 'publish'), of.enter('a', 'publish')]
  assert.throws(() => of.enter('a', 'publish'), isExhausted)
  leave()
  leave() // once is enough
  of.enter('a', 'publish')
  assert.throws(() => of.enter('a', 'publish'), isExhausted)
  const ended = of.enter('b', 'subscribe')
  of.enter('b', 'subscribe')
  assert.throws(() => of.enter('b', 'subscribe'), isExhausted)
  ended()
  of.enter('b', 'subscribe')
})

test('R6.5 clients that have gone quiet are forgotten, those with something under way are not', () => {
  const clock = manualClock()
  const of = new ClientLimits(limits, clock)
  for (let n = 0; n < 100; n++) of.enter(`client-${n}`, 'publish')()
  of.enter('listens', 'subscribe')
  clock.advance(10_000)
  of.sweep()
  assert.equal(of.clients, 1)
})

test('R6.4 groups say which cluster a credential is of, and no other group looks like one', () => {
  const all = [
    'system:open-cluster-management:c1',
    'system:open-cluster-management:managed-clusters',
    'open-cluster-management:c1',
  ]
  assert.deepEqual(clustersOf(all), ['c1'])
  assert.deepEqual(clustersOf(['system:open-cluster-management:cluster:c1:addon:a', 'system:authenticated']), [])
  assert.deepEqual(clustersOf([...all, 'open-cluster-management:c2']), ['c1', 'c2'])
})

test('R6.3 answers count for their time, are asked for once by all who wait, and failures for nobody', async () => {
  const clock = manualClock()
  const remembered = new Remembered<number>({ clock, most: 2 })
  let asked = 0
  const ask = async () => ({ value: ++asked, forMs: 1000 })
  assert.deepEqual(await Promise.all([remembered.get('a', ask), remembered.get('a', ask)]), [1, 1])
  clock.advance(1000)
  assert.equal(await remembered.get('a', ask), 2)
  await assert.rejects(
    remembered.get('b', () => Promise.reject(new Error('away'))),
    /away/,
  )
  assert.equal(await remembered.get('b', ask), 3)
  await remembered.get('c', ask)
  assert.equal(remembered.size, 2)
})

test('R6.1 reports about one work are written in the order in which they were sent, whatever order they come in', async () => {
  const turns = new Turns()
  const written: string[] = []
  const first = Promise.withResolvers<void>()
  const write = (name: string, after?: Promise<void>) => async (): Promise<bigint> => {
    await after
    written.push(name)
    return BigInt(written.length)
  }
  const session = {}
  const sent = (number: string) => ({ number, session })
  const all = [
    turns.run('w', sent('10'), write('10', first.promise)),
    turns.run('w', sent('12'), write('12')),
    turns.run('w', sent('11'), write('11')),
    turns.run('other', sent('1'), write('other')),
    turns.run('w', sent(''), write('unnumbered')),
  ]
  first.resolve()
  await Promise.all(all)
  assert.deepEqual(
    written.filter((one) => one !== 'other'),
    ['10', '12', 'unnumbered'],
  )
  await assert.rejects(
    turns.run('w', sent('13'), () => Promise.reject(new Error('refused'))),
    /refused/,
  )
  await turns.run('w', sent('14'), write('14'))
  assert.equal(written.at(-1), '14')
})

test('R6.7 an agent whose clock was set back is heard once it has connected anew, and what it sent before that stays late', async () => {
  const turns = new Turns()
  const written: string[] = []
  const [before, after] = [{}, {}]
  const say = (number: string, session: object): Promise<void> =>
    turns.run('w', { number, session }, async () => BigInt(written.push(number)))
  await say('100', before)
  await say('7', after)
  await say('101', before)
  await say('6', after)
  await say('8', after)
  assert.deepEqual(written, ['100', '7', '8'])
})

test('R6.7 each report is told what the one before it left, and after a failure that nobody knows', async () => {
  const turns = new Turns()
  const session = {}
  const told: unknown[] = []
  const run = (number: string, work: () => Promise<bigint>): Promise<void> =>
    turns.run('w', { number, session }, (left) => {
      told.push(left)
      return work()
    })
  await run('1', async () => 5n)
  await assert.rejects(
    run('2', () => Promise.reject(new Error('no answer'))),
    /no answer/,
  )
  await run('3', async () => 9n)
  await run('4', async () => 9n)
  assert.deepEqual(told, [0n, 5n, undefined, 9n])
})
