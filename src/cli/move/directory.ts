import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Bundle, Item } from '../../identities/move/index.ts'
import { apiVersionOf, parseYaml, type Resource, type Unstructured } from '../../kube/index.ts'
import { CliError } from '../errors.ts'

/** What says that a directory is an export, and whether all of it is there. */
const indexFile = 'move.json'
const format = 1

interface Index extends Omit<Bundle, 'items' | 'left'> {
  format: number
  complete: boolean
  items: { file: string; resource: Resource; fate: Item['fate']; wave: number; loose?: boolean; withheld?: boolean }[]
}

/** Writes a bundle, one file for each object, for nobody else to read. Secrets are named, and have their content only if asked for. */
export const writeBundle = async (
  path: string,
  bundle: Bundle,
  { includeSecrets }: { includeSecrets: boolean },
): Promise<{ files: number; withheld: number }> => {
  await mkdir(path, { recursive: true, mode: 0o700 })
  await refuseOthers(path, bundle)
  const { stringify } = await import('yaml')
  const write = (name: string, text: string): Promise<void> => writeFile(join(path, name), text, { mode: 0o600 })
  const { items, left: _left, ...about } = bundle
  const entries = items.map(({ resource, fate, wave, object, loose, withheld }) => ({
    file: `${resource.kind}${resource.group && `.${resource.group}`}_${object.metadata.namespace ?? ''}_${object.metadata.name}.yaml`,
    resource,
    fate,
    wave,
    ...(loose ? { loose } : {}),
    ...(withheld || (isSecret(resource) && !includeSecrets) ? { withheld: true } : {}),
  }))
  const index = (complete: boolean): string =>
    `${JSON.stringify({ format, complete, ...about, items: entries } satisfies Index, undefined, 2)}\n`
  await write(indexFile, index(false))
  for (const [at, { file, withheld }] of entries.entries()) {
    const { object: of, resource } = items[at]!
    const object = { apiVersion: apiVersionOf(resource), kind: resource.kind, ...of }
    await write(
      file,
      stringify(withheld ? emptied(object) : tidy(object), { lineWidth: 0, aliasDuplicateObjects: false }),
    )
  }
  await write(indexFile, index(true))
  return { files: entries.length, withheld: entries.filter(({ withheld }) => withheld).length }
}

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
const refuseOthers = async (path: string, { origin, namespace }: Bundle): Promise<void> => {
  if ((await readdir(path)).length === 0) return
  const index = await readIndex(path).catch(() => undefined)
  if (index?.origin === origin && index.namespace === namespace) return
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
      if (file.includes('/')) throw new CliError(`${path}: ${indexFile} names ${file}, which is not in the directory`)
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
