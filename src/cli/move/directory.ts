import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Bundle, Item } from '../../identities/move/index.ts'
import { apiVersionOf, parseYaml, type Resource, type Unstructured } from '../../kube/index.ts'
import { CliError } from '../errors.ts'

/** What says that a directory is an export, and whether all of it is there. */
const indexFile = 'move.json'
/** An index that is still being written. */
const partFile = `${indexFile}.part`
const format = 1

interface Index extends Omit<Bundle, 'items' | 'left'> {
  format: number
  complete: boolean
  items: { file: string; resource: Resource; fate: Item['fate']; wave: number; loose?: boolean; withheld?: boolean }[]
}

/** What an export does to files. Each of these happens or does not, but for a write, which can end in the middle. */
export interface Files {
  write(path: string, text: string): Promise<void>
  rename(from: string, to: string): Promise<void>
  remove(path: string): Promise<void>
}

/** For nobody else to read, and on the disk before the index says that it is there. */
export const onDisk: Files = {
  write: (path, text) => writeFile(path, text, { mode: 0o600, flush: true }),
  rename,
  remove: (path) => rm(path, { force: true }),
}

/** Writes a bundle, one file for each object, for nobody else to read. Secrets are named, and have their content only if asked for. */
export const writeBundle = async (
  path: string,
  bundle: Bundle,
  { includeSecrets, files = onDisk }: { includeSecrets: boolean; files?: Files },
): Promise<{ files: number; withheld: number }> => {
  await mkdir(path, { recursive: true, mode: 0o700 })
  const before = await refuseOthers(path, bundle)
  const { stringify } = await import('yaml')
  const { items, left: _left, ...about } = bundle
  const entries = items.map(({ resource, fate, wave, object, loose, withheld }) => ({
    file: `${resource.kind}${resource.group && `.${resource.group}`}_${object.metadata.namespace ?? ''}_${object.metadata.name}.yaml`,
    resource,
    fate,
    wave,
    ...(loose ? { loose } : {}),
    ...(withheld || (isSecret(resource) && !includeSecrets) ? { withheld: true } : {}),
  }))
  const index: Index = { format, complete: false, ...about, items: entries }
  if (before) await removeStale(path, before, index, files)
  await writeIndex(path, index, files)
  for (const [at, { file, withheld }] of entries.entries()) {
    const { object: of, resource } = items[at]!
    const object = { apiVersion: apiVersionOf(resource), kind: resource.kind, ...of }
    const text = stringify(withheld ? emptied(object) : tidy(object), { lineWidth: 0, aliasDuplicateObjects: false })
    await files.write(join(path, file), text)
  }
  await writeIndex(path, { ...index, complete: true }, files)
  return { files: entries.length, withheld: entries.filter(({ withheld }) => withheld).length }
}

/** Half an index would be nobody's: it is there as a whole or as it was. */
const writeIndex = async (path: string, index: Index, files: Files): Promise<void> => {
  await files.write(join(path, partFile), `${JSON.stringify(index, undefined, 2)}\n`)
  await files.rename(join(path, partFile), join(path, indexFile))
}

/** What an earlier export had and this one has not: it may be a Secret in clear. Only the earlier index knows of it, so it goes last. */
const removeStale = async (path: string, before: Index, now: Index, files: Files): Promise<void> => {
  const kept = new Set(now.items.map(({ file }) => file))
  const stale = before.items.filter(({ file }) => !kept.has(file) && isInside(file))
  if (stale.length === 0) return
  await writeIndex(path, { ...before, complete: false }, files)
  for (const { file } of stale) await files.remove(join(path, file))
}

const isInside = (file: string): boolean => !file.includes('/')

const isSecret = ({ group, kind }: Resource): boolean => group === '' && kind === 'Secret'

/** Who wrote which field is of no use to anybody who reads the file, and may repeat what was in it. */
const tidy = ({ metadata: { managedFields: _fields, ...metadata }, ...rest }: Unstructured): Unstructured => ({
  ...rest,
  metadata,
})

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

const emptied = (secret: Unstructured): Unstructured => {
  const { data: _data, stringData: _text, ...rest } = tidy(secret)
  const { [lastApplied]: _applied, ...annotations } = secret.metadata.annotations ?? {}
  return { ...rest, metadata: { ...rest.metadata, annotations } }
}

/** An export of the same namespace is written anew; anything else in the directory is somebody's. */
const refuseOthers = async (path: string, { origin, namespace }: Bundle): Promise<Index | undefined> => {
  if ((await readdir(path)).every((file) => file === partFile)) return undefined
  const index = await readIndex(path).catch(() => undefined)
  if (index?.origin === origin && index.namespace === namespace) return index
  throw new CliError(`${path} is not empty`, { next: 'give --to-directory a new or an empty directory' })
}

const readIndex = async (path: string): Promise<Index> => {
  try {
    return JSON.parse(await readFile(join(path, indexFile), 'utf8')) as Index
  } catch (cause) {
    throw new CliError(`${path} is no export of move: ${indexFile} cannot be read`, {
      next: 'give --from-directory what --to-directory has written',
      cause,
    })
  }
}

/** Reads what `writeBundle` wrote. Half an export is none. */
export const readBundle = async (path: string): Promise<Bundle> => {
  const { format: written, complete, items: entries, ...about } = await readIndex(path)
  if (written !== format)
    throw new CliError(`${path} has format ${String(written)} of move, and this program reads ${format}`, {
      next: 'export it again, or use the version of the program that wrote it',
    })
  if (!complete)
    throw new CliError(`${path} is not complete: the export was interrupted`, {
      next: 'run the same move with --to-directory again',
    })
  const items = await Promise.all(
    entries.map(async ({ file, ...entry }): Promise<Item> => {
      if (!isInside(file)) throw new CliError(`${path}: ${indexFile} names ${file}, which is not in the directory`)
      const text = await readFile(join(path, file), 'utf8').catch((cause: unknown) => {
        throw new CliError(`${join(path, file)} is missing or cannot be read`, { next: 'export it again', cause })
      })
      const { value, problem } = await parseYaml(text)
      if (problem) throw new CliError(`${join(path, file)} is not YAML: ${problem}`, { next: 'export it again' })
      return { ...entry, object: value as Unstructured }
    }),
  )
  return { ...about, items, left: [] }
}
