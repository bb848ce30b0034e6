/** Moves that are cut off: any write may be the last one of a process, to a cluster or to a file. `make soak` takes all of them. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { atOnce, contentsOf, isBuilt, oneCluster } from '../../../testkit/aws-network.ts'
import { hubNamespace, runIdentities, type IdentityHub } from '../../../testkit/identity-hub.ts'
import { rounds, seededRandom, startLocalAws, type ControlPlane, type LocalAws } from '../../../testkit/index.ts'
import {
  cutPoints,
  mortal,
  runAbort,
  runExport,
  runImport,
  runMove,
  type End,
  type MortalOptions,
  type Write,
} from '../../../testkit/move-cuts.ts'
import { observeMove, type Observer } from '../../../testkit/move-observer.ts'
import {
  byChain,
  byKeys,
  byToken,
  contentsOfNamespace,
  forgetIdentities,
  installForeign,
  machineDeployments,
  machineTemplates,
  withMachines,
} from '../../../testkit/move-scene.ts'
import { startTwoHubs, type TwoHubs } from '../../../testkit/two-hubs.ts'
import { AWSCluster, AWSServiceAccountIdentity, Cluster } from '../../api/index.ts'
import { MoveRefused } from '../../identities/move/index.ts'
import { ConfigMap, Secret, type Client, type KubeObject, type Resource } from '../../kube/index.ts'
import { readBundle } from './directory.ts'

let hubs: TwoHubs
let one: ControlPlane
let two: ControlPlane
let local: LocalAws
before(async () => {
  // Garbage is collected on the second: what hangs on an owner that does not exist would go.
  ;[hubs, local] = await Promise.all([startTwoHubs({ garbage: true }), startLocalAws()])
  ;({ one, two } = hubs)
  for (const client of [hubs.here, hubs.there]) await installForeign(client)
})
after(() => Promise.all([hubs.stop(), local.stop()]))

const space = 'cut'
const accounts = { keys: '220000000041', chain: '220000000042', token: '220000000043' }
const names = Object.keys(accounts)

/** A management cluster with a hub that can be killed. */
interface Side extends End {
  name: string
  hub: IdentityHub
  restart: () => Promise<void>
}

interface Scene {
  one: Side
  two: Side
  observer: Observer
  /** What is in the namespace while it is on one side. */
  whole: string[]
}

/** Three clusters, each by another kind of identity, one with machines, on the first of two hubs that build. */
const sceneOf = async (t: TestContext): Promise<Scene> => {
  const sideOf = async (name: string, plane: ControlPlane, own: string): Promise<Side> => {
    const run = (before?: IdentityHub) =>
      runIdentities(t, plane, local, { infrastructure: atOnce, namespace: own, ...(before ? { before } : {}) })
    const side: Side = {
      name,
      own,
      client: plane.client(),
      hub: await run(),
      restart: async () => {
        await side.hub.stop()
        side.hub = await run(side.hub)
      },
    }
    return side
  }
  const [a, b] = [await sideOf('one', one, hubNamespace), await sideOf('two', two, 'capa-system')]
  await byKeys(a.hub, `${space}/keys`, accounts.keys, a.own)
  await byChain(a.hub, `${space}/chain`, accounts.chain, a.own)
  await byToken(a.hub, `${space}/token`, accounts.token)
  await withMachines(a.client, `${space}/keys`)
  await withMore(a.client)
  for (const name of names) await isBuilt(a.client, `${space}/${name}`)
  const watched = ({ name, hub }: Side) => ({ name, client: hub.client, front: hub.front })
  const observer = await observeMove(t, space, [watched(a), watched(b)])
  return { one: a, two: b, observer, whole: await contentsOfNamespace(a.client, space) }
}

/** Something that goes before any of the clusters is touched: what owns it is owned itself. */
const withMore = async (client: Client): Promise<void> => {
  const { metadata } = await client.of(machineDeployments.kind, space).get('keys-md')
  const owner = {
    apiVersion: 'cluster.x-k8s.io/v1beta1',
    kind: 'MachineDeployment',
    name: 'keys-md',
    uid: metadata.uid!,
  }
  await client.of(ConfigMap, space).create({
    metadata: { namespace: space, name: 'keys-md-notes', ownerReferences: [owner] },
    data: { notes: 'of it' },
  })
}

/** Everything is on this side, awake, with its finalizers, and nothing of a move sticks to it; nothing is on the other. */
const assertAllOn = async (side: Side, other: Side, { observer, whole }: Scene, why: string): Promise<void> => {
  assert.deepEqual(await contentsOfNamespace(side.client, space), whole, why)
  assert.deepEqual(await contentsOfNamespace(other.client, space), [], why)
  for (const name of names) await observer.sawAwake(name, side.name)
  const deployment = await side.client.of(machineDeployments.kind, space).get('keys-md')
  assert.deepEqual(deployment.metadata.finalizers, ['example.com/machines'], why)
  for (const { metadata } of (await side.client.of(AWSCluster, space).list()).items)
    assert.ok(metadata.finalizers?.includes('awscluster.infrastructure.cluster.x-k8s.io'), why)
  const stuck = (await annotationsIn(side.client)).flatMap((all) => Object.keys(all).filter((one) => ofAMove.test(one)))
  assert.deepEqual(stuck, [], why)
  observer.assertQuiet()
}

/** A run of a process that is gone after so many writes; answers what it has written when it came to its end before. */
const cut = async (
  ends: readonly End[],
  after: number,
  run: (process: ReturnType<typeof mortal>) => Promise<void>,
  hooks: Omit<MortalOptions, 'after'> = {},
): Promise<{ died: boolean; writes: number }> => {
  const process = mortal(
    ends.map(({ client }) => client),
    { after, ...hooks },
  )
  try {
    await run(process)
  } catch (error) {
    if (!process.died()) throw error
    assert.match(String(error), /the process is gone/)
  } finally {
    process.revive()
  }
  return { died: process.died(), writes: process.writes() }
}

test('R3.56 R3.72 R3.77 clusters by keys, by a chain and by tokens: a move, an export, an import and the way back are cut off at any write, and completed by running them again; AWS sees no change', async (t) => {
  const random = seededRandom(t)
  const scene = await sceneOf(t)
  let [from, to] = [scene.one, scene.two]
  const turn = (): void => {
    ;[from, to] = [to, from]
  }

  await t.test('a move, while the hub of one side is killed and started again', async (t) => {
    const whole = await cut([from, to], Infinity, () => runMove(from, to, space))
    await assertAllOn(to, from, scene, 'not cut')
    t.diagnostic(`${whole.writes} writes`)
    for (const point of cutPoints(random, whole.writes, rounds(1, Infinity))) {
      turn()
      await forgetIdentities(to.client, to.own) // so that each move has to bring them
      const [victim, when] = [random.pick([from, to]), 1 + random.below(point)]
      let restarted: Promise<void> | undefined
      const { died } = await cut([from, to], point, () => runMove(from, to, space), {
        at: (write) => {
          if (write === when) restarted = victim.restart()
        },
      })
      await restarted
      const why = `cut after write ${point}, the hub of ${victim.name} killed at write ${when}`
      t.diagnostic(died ? why : `not ${why}: it came to its end`)
      await runMove(from, to, space)
      await assertAllOn(to, from, scene, why)
    }
  })

  await t.test('an export and an import', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'lanyard-move-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const path = (round: number): string => join(folder, `export-${round}`)
    const bothWays = async (round: number, points: { out: number; in: number }) => {
      turn()
      await forgetIdentities(to.client, to.own)
      const out = await cut([from], points.out, ({ files }) => runExport(from, space, path(round), files))
      const why = `export cut after write ${points.out}: ${readdirSync(folder).join()}`
      if (out.died) {
        const isWhole = await readBundle(path(round)).then(
          () => true,
          () => false,
        )
        // The last write is the one that says that all is there.
        assert.equal(isWhole, false, why)
        await cut([from], Infinity, ({ files }) => runExport(from, space, path(round), files))
      }
      const into = await cut([to], points.in, () => runImport(to, path(round)))
      if (into.died) await runImport(to, path(round))
      t.diagnostic(`export cut after write ${points.out}, import after write ${points.in}`)
      assert.deepEqual(await contentsOfNamespace(to.client, space), scene.whole, why)
      // Read elsewhere, so what is left is removed.
      await runMove(from, to, space)
      await assertAllOn(to, from, scene, `${why}, import cut after write ${points.in}`)
      return { out: out.writes, in: into.writes }
    }
    const whole = await bothWays(0, { out: Infinity, in: Infinity })
    t.diagnostic(`${whole.out} writes out, ${whole.in} in`)
    const into = cutPoints(random, whole.in, rounds(1, Infinity))
    // The rename of the index is the last one: after it there is nothing to cut.
    const out = cutPoints(random, whole.out - 1, rounds(1, Infinity))
    for (let round = 0; round < Math.max(out.length, into.length); round++)
      await bothWays(round + 1, { out: out[round % out.length]!, in: into[round % into.length]! })
  })

  await t.test('the way back', async (t) => {
    turn()
    await forgetIdentities(to.client, to.own)
    const writes: Write[] = []
    const at = (_: number, write: Write | undefined): void => void writes.push(write!)
    await cut([from, to], Infinity, () => runMove(from, to, space), { at })
    // Always those between which the way back ends: all is on the target, and the first of it is gone from the source.
    const lastMade = writes.findLastIndex(({ side, method }) => side === 1 && method === 'POST') + 1
    const firstGone = writes.findIndex(({ side, method }) => side === 0 && method === 'DELETE') + 1
    let givenUp = 0
    for (const point of [lastMade, firstGone, ...cutPoints(random, writes.length - 1, rounds(1, Infinity))]) {
      turn()
      await forgetIdentities(to.client, to.own)
      await cut([from, to], point, () => runMove(from, to, space))
      const stage = await stageOf(from, to, scene)
      const last = 1 + random.below(point)
      const why = `move cut after write ${point}, its end after write ${last}`
      const refusal = await cut([from, to], last, () => runAbort(from, to, space)).then(
        () => undefined,
        (error: unknown) => error,
      )
      t.diagnostic(`${why}: ${stage}`)
      assert.equal(refusal instanceof MoveRefused, stage === 'leaving', `${why}: ${stage}, ${String(refusal)}`)
      if (stage !== 'here') {
        await runMove(from, to, space)
        await assertAllOn(to, from, scene, why)
        continue
      }
      givenUp += 1
      // Half given up it goes one way only.
      if (await isComingBack(from))
        await assert.rejects(runMove(from, to, space), /is being given up.*the same command with --abort/)
      await runAbort(from, to, space)
      await assertAllOn(from, to, scene, why)
      turn() // it is still where it was
    }
    t.diagnostic(`${givenUp} given up`)
    assert.ok(givenUp > 0)
  })

  await t.test('somebody gives up a move that still runs', async (t) => {
    const whole = await (async () => {
      turn()
      await forgetIdentities(to.client, to.own)
      return cut([from, to], Infinity, () => runMove(from, to, space))
    })()
    for (const point of cutPoints(random, whole.writes - 1, rounds(1, Infinity))) {
      turn()
      await forgetIdentities(to.client, to.own)
      const theirs = [from, to].map(({ own, hub }) => ({ own, client: hub.client })) as [End, End]
      const giveUp = (): Promise<string> =>
        runAbort(...theirs, space).then(
          () => 'given up',
          (error: unknown) => {
            if (error instanceof MoveRefused) return 'refused'
            throw error
          },
        )
      let abort = ''
      const move = await cut([from, to], Infinity, () => runMove(from, to, space), {
        at: async (write) => {
          if (write === point) abort = await giveUp()
        },
      }).then(
        () => 'completed',
        (error: unknown) => `stopped: ${error instanceof Error ? error.message : String(error)}`,
      )
      const why = `at write ${point}: ${abort}, and the move ${move}`
      t.diagnostic(why)
      if (abort === 'refused') assert.equal(move, 'completed', why)
      if (move === 'completed') {
        await assertAllOn(to, from, scene, why)
        continue
      }
      // What it still made on the target goes; at the source nothing is missing.
      await giveUp()
      await assertAllOn(from, to, scene, why)
      turn()
    }
  })

  await t.test('somebody gives up a move that is about to remove what it has copied', async () => {
    turn()
    await forgetIdentities(to.client, to.own)
    const [begins, mayGoOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let isCopied = false
    const moving = cut([from, to], Infinity, () => runMove(from, to, space), {
      before: ({ side, method, path }) => {
        isCopied ||= side === 1 && method === 'POST' && path.endsWith('/clusters')
        if (!isCopied || side === 1) return undefined
        begins.resolve()
        return mayGoOn.promise
      },
    })
    await begins.promise
    // It goes on in the middle of the way back, as soon as that has touched the target.
    const [here, there] = [from, to].map(({ own, hub }) => ({ own, client: hub.client })) as [End, End]
    const stopped = assert.rejects(moving, /was changed at the source after it was copied/)
    const back = mortal([here.client, there.client], {
      before: async ({ side }) => {
        if (side === 0) return
        mayGoOn.resolve()
        await stopped
      },
    })
    await runAbort(here, there, space).finally(back.revive)
    await assertAllOn(from, to, scene, 'given up beside a move')
    turn()
  })

  const { hub } = scene.one
  for (const [name, id] of Object.entries(accounts))
    assert.deepEqual(await contentsOf(hub.aws, hub.account(id)), oneCluster, name)
})

/** Where a move stands: all is still here, something has left or is free to leave, or it is over. */
const stageOf = async (from: Side, to: Side, { whole }: Scene): Promise<'here' | 'leaving' | 'over'> => {
  const [here, there] = await Promise.all([from, to].map(({ client }) => annotationsIn(client)))
  const left = await contentsOfNamespace(from.client, space)
  if (left.length === 0 && !there!.some((one) => 'move.lanyard.io/moving-from' in one)) return 'over'
  const isFree = here!.some((one) => 'clusterctl.cluster.x-k8s.io/delete-for-move' in one)
  return isFree || left.length < whole.length ? 'leaving' : 'here'
}

const ofAMove = /\/(moving-|paused|delete-for-move)/

/** The annotations of each thing in the namespace that could have some. */
const annotationsIn = async (client: Client): Promise<Record<string, string>[]> => {
  const own = [Cluster, AWSCluster, AWSServiceAccountIdentity, Secret, ConfigMap]
  const kinds = [...own, machineDeployments.kind, machineTemplates.kind] as Resource<KubeObject>[]
  const lists = await Promise.all(kinds.map((kind) => client.of(kind, space).list({ metadataOnly: true })))
  return lists.flatMap(({ items }) => items.map(({ metadata }) => metadata.annotations ?? {}))
}

const isComingBack = async ({ client }: Side): Promise<boolean> =>
  (await annotationsIn(client)).some((one) => one['move.lanyard.io/moving-to']?.startsWith('given-up:'))
