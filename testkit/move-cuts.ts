import type { Client } from '../src/kube/index.ts'
import { onDisk, readBundle, writeBundle, type Files } from '../src/cli/move/directory.ts'
import {
  abortMove,
  hubAt,
  moveBundle,
  MoveRefused,
  prepareAbort,
  prepareExport,
  prepareImport,
  prepareMove,
  stopForExport,
  type Obstacle,
  type Steps,
} from '../src/identities/move/index.ts'
import { systemClock } from '../src/runtime/index.ts'
import { region } from './identity-hub.ts'
import type { Random } from './random.ts'

/** What a process of `move` has of a side: a client that is its own, and where the hub is. */
export interface End {
  client: Client
  own: string
}

/** A process that is gone after so many writes, to clusters or to files: whatever it would do from then on fails. */
export interface Mortal {
  files: Files
  died: () => boolean
  /** What it has written so far. */
  writes: () => number
  /** Its clients work again, for the next process. */
  revive: () => void
}

/** A write to a cluster: by its place among the clients of a process. */
export interface Write {
  side: number
  method: string
  path: string
}

export interface MortalOptions {
  /** How many writes it lives for. */
  after?: number
  /** Holds it up before a write to a cluster. */
  before?: (write: Write) => void | Promise<void>
  /** Holds it up after each write that was done, to a cluster or a file, the first one being 1. */
  at?: (write: number, what: Write | undefined) => void | Promise<void>
}

export const mortal = (
  clients: readonly Client[],
  { after = Infinity, before = () => {}, at = () => {} }: MortalOptions = {},
): Mortal => {
  let writes = 0
  let dead = false
  const living = (): void => {
    if (dead) throw new Error('the process is gone')
  }
  const written = async (what?: Write): Promise<void> => {
    const write = ++writes
    if (write >= after) dead = true
    await at(write, what)
    living()
  }
  const originals = clients.map((client) => client.json.bind(client))
  for (const [side, client] of clients.entries())
    client.json = async <T>(request: Parameters<Client['json']>[0]): Promise<T> => {
      living()
      const { method, path, query } = request
      const isWrite = method !== 'GET' && !query?.['dryRun'] && !path.includes('accessreviews')
      if (isWrite) await before({ side, method, path })
      const answer = await originals[side]!<T>(request)
      if (isWrite) await written({ side, method, path })
      living()
      return answer
    }
  const files: Files = {
    write: async (path, text) => {
      living()
      // The last one stops in the middle.
      await onDisk.write(path, writes + 1 >= after ? text.slice(0, text.length / 2) : text)
      await written()
    },
    rename: async (from, to) => {
      living()
      await onDisk.rename(from, to)
      await written()
    },
    remove: async (path) => {
      living()
      await onDisk.remove(path)
      await written()
    },
  }
  return {
    files,
    died: () => dead,
    writes: () => writes,
    revive: () => {
      for (const [side, client] of clients.entries()) client.json = originals[side] as Client['json']
    },
  }
}

/** Some of the points at which a process can be cut off, all of them when as many are wanted. */
export const cutPoints = (random: Random, writes: number, wanted: number): number[] => {
  const all = Array.from({ length: writes }, (_, at) => at + 1)
  const chosen: number[] = []
  while (chosen.length < wanted && all.length > 0) chosen.push(...all.splice(random.below(all.length), 1))
  return chosen
}

const { signal } = new AbortController()
const options = { keepAllowedNamespaces: false, defaultRegion: region, checkAccount: true, signal }
const steps: Steps = { clock: systemClock, step: (_, run) => run({ signal, seen: () => {} }) }
const unlessRefused = (obstacles: readonly Obstacle[]): void => {
  if (obstacles.length > 0) throw new MoveRefused(obstacles)
}

/** A whole run of `move`, as a process of its own would do it. */
export const runMove = async (
  from: End,
  to: End,
  namespace: string,
  { checkAccount = true }: { checkAccount?: boolean } = {},
): Promise<void> => {
  const [source, target] = [await hubAt(from.client, from.own, signal), await hubAt(to.client, to.own, signal)]
  const { move, obstacles } = await prepareMove(source, target, namespace, { ...options, checkAccount })
  unlessRefused(obstacles)
  await moveBundle(move, steps)
}

/** Of `move --abort`. */
export const runAbort = async (from: End, to: End, namespace: string): Promise<void> => {
  const [source, target] = [await hubAt(from.client, from.own, signal), await hubAt(to.client, to.own, signal)]
  const { retreat, obstacles } = await prepareAbort(source, target, namespace, signal)
  unlessRefused(obstacles)
  await abortMove(retreat, steps)
}

/** Of `move --to-directory --include-secrets`. */
export const runExport = async (from: End, namespace: string, path: string, files: Files): Promise<void> => {
  const source = await hubAt(from.client, from.own, signal)
  const { bundle, obstacles } = await prepareExport(source, namespace, options)
  unlessRefused(obstacles)
  await writeBundle(path, await stopForExport(source, bundle, steps), { includeSecrets: true, files })
}

/** Of `move --from-directory`. */
export const runImport = async (to: End, path: string): Promise<void> => {
  const target = await hubAt(to.client, to.own, signal)
  const { move, obstacles } = await prepareImport(await readBundle(path), target, options)
  unlessRefused(obstacles)
  await moveBundle(move, steps)
}
