import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** What the cache holds of one token. */
export interface Entry {
  token?: string | undefined
  /** Milliseconds. */
  expiresAt?: number | undefined
  /** When the hub was asked. */
  readAt?: number | undefined
  /** The hub did not answer: the token is used on until then. */
  retryAt?: number | undefined
  /** The last time that it could not be read, for those who waited for it. */
  failure?: { at: number; message: string; next?: string | undefined } | undefined
}

/** Makes the folder for nobody else; false when it cannot be, or somebody else could write to it. */
export const prepareFolder = async (folder: string): Promise<boolean> => {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const { uid, mode } = await stat(folder)
    return isOurs(uid) && (mode & 0o022) === 0
  } catch {
    return false
  }
}

/** The entry in a file; undefined when there is none, or when others could have written or read it. */
export const readEntry = async (file: string): Promise<Entry | undefined> => {
  try {
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW)
    try {
      const { uid, mode } = await handle.stat()
      if (!isOurs(uid) || (mode & 0o077) !== 0) return undefined
      return checked(JSON.parse(await handle.readFile('utf8')))
    } finally {
      await handle.close()
    }
  } catch {
    return undefined // not there, or not ours: it is read from the hub and replaced
  }
}

/** Replaces the entry in one piece: a reader sees the old one or the new one. */
export const writeEntry = async (file: string, entry: Entry): Promise<void> => {
  const draft = `${file}.${randomUUID()}`
  try {
    await writeFile(draft, JSON.stringify(entry), { mode: 0o600, flag: 'wx' })
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

const dayMs = 86_400_000

/** Removes what nobody has used for a day: entries of other hubs, and what processes left that were killed. */
export const sweep = async (file: string, now: number): Promise<void> => {
  const folder = dirname(file)
  const names = await readdir(folder).catch(() => [])
  await Promise.all(
    names
      .filter((name) => /^[0-9a-f]{64}(\.|$)/.test(name))
      .map(async (name) => {
        const path = join(folder, name)
        const seen = await lstat(path).catch(() => undefined)
        if (seen && now - seen.mtimeMs > dayMs) await rm(path, { force: true })
      }),
  )
}

const isOurs = (uid: number): boolean => uid === (process.getuid?.() ?? uid)

const checked = (value: unknown): Entry | undefined => {
  if (typeof value !== 'object' || value === null) return undefined
  const { token, expiresAt, readAt, retryAt } = value as Entry
  const isNumber = (one: unknown): boolean => one === undefined || typeof one === 'number'
  const isText = token === undefined || typeof token === 'string'
  return isText && [expiresAt, readAt, retryAt].every(isNumber) ? value : undefined
}
