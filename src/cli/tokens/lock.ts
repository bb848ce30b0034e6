import { randomUUID } from 'node:crypto'
import { link, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'

/** Who takes locks, and who can be asked whether they live. */
export interface Self {
  readonly pid: number
  readonly host: string
  isAlive(pid: number): boolean
}

interface Holder {
  id: string
  pid: number
  host: string
}

export const thisProcess = (): Self => ({
  pid: process.pid,
  host: hostname(),
  isAlive: (pid) => {
    try {
      return process.kill(pid, 0)
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'EPERM' // it lives, and is somebody else's
    }
  },
})

/** A holder on another machine, or whose number another process has now, is given up after this. */
const longestMs = 120_000

/**
 * Takes the lock of a file, and answers with what gives it back; undefined while another process has it. A holder that died is
 * seen at once: its number is in the lock. Two may hold it in the worst case, when both find the same dead holder in the same
 * moment; that costs a request more, and nothing else, as what is guarded is replaced in one piece.
 */
export const tryLock = async (
  file: string,
  { self, now }: { self: Self; now: () => number },
): Promise<(() => Promise<void>) | undefined> => {
  const mine: Holder = { id: randomUUID(), pid: self.pid, host: self.host }
  const draft = `${file}.${mine.id}`
  await writeFile(draft, JSON.stringify(mine), { mode: 0o600, flag: 'wx' })
  try {
    // A link appears with its content: nobody ever sees a lock without a holder.
    await link(draft, file)
    return async () => {
      if ((await holderOf(file))?.id === mine.id) await rm(file, { force: true })
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft, { force: true })
  }
  const [holder, age] = await Promise.all([holderOf(file), ageOf(file, now())])
  const isDead = holder?.host === self.host && !self.isAlive(holder.pid)
  if (isDead || age > longestMs) await takeAway(file, mine.id)
  return undefined
}

// Moved before it is removed: of several who find it dead, one moves it, and the others find it gone.
const takeAway = async (file: string, id: string): Promise<void> => {
  const aside = `${file}.${id}.dead`
  await rename(file, aside).catch(() => undefined)
  await rm(aside, { force: true })
}

const holderOf = async (file: string): Promise<Holder | undefined> => {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Holder
  } catch {
    return undefined // gone meanwhile
  }
}

const ageOf = async (file: string, now: number): Promise<number> => {
  try {
    return now - (await stat(file)).mtimeMs
  } catch {
    return 0
  }
}
