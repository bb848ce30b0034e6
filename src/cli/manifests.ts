import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ManifestWork } from '../api/index.ts'
import type { Unstructured } from '../kube/index.ts'
import type { Cli } from './command.ts'
import { CliError } from './errors.ts'
import { readAll } from './stdin.ts'

/** The manifests in files, folders and, as `-`, on stdin: YAML of any number of documents, or JSON. Lists are taken apart. */
export const readManifests = async (cli: Pick<Cli, 'stdin'>, paths: readonly string[]): Promise<Unstructured[]> => {
  const manifests: Unstructured[] = []
  for (const path of paths)
    for (const { name, text } of await textsAt(cli, path)) manifests.push(...(await manifestsIn(name, text)))
  if (manifests.length === 0) throw new CliError(`${paths.join(', ')}: there are no manifests in it`)
  return manifests
}

const textsAt = async (cli: Pick<Cli, 'stdin'>, path: string): Promise<{ name: string; text: string }[]> => {
  if (path === '-') return [{ name: 'stdin', text: await readAll(cli) }]
  try {
    if (!(await stat(path)).isDirectory()) return [{ name: path, text: await readFile(path, 'utf8') }]
    const names = (await readdir(path)).filter((name) => /\.(ya?ml|json)$/.test(name)).toSorted()
    return await Promise.all(
      names.map(async (name) => ({ name: join(path, name), text: await readFile(join(path, name), 'utf8') })),
    )
  } catch (cause) {
    throw new CliError(`${path} cannot be read: ${(cause as NodeJS.ErrnoException).code}`, {
      next: 'give -f a file, a folder, or - for stdin',
      cause,
    })
  }
}

const manifestsIn = async (name: string, text: string): Promise<Unstructured[]> => {
  const { parseAllDocuments } = await import('yaml')
  const documents = parseAllDocuments(text, { uniqueKeys: true })
  return ('empty' in documents ? [] : documents).flatMap((document) => {
    const [problem] = document.errors
    if (problem) throw new CliError(`${name} is not YAML: ${problem.message.split('\n')[0]}`)
    return flattened(name, document.toJS() as Unstructured | null)
  })
}

const flattened = (name: string, value: Unstructured | null): Unstructured[] => {
  if (value === null) return []
  if (typeof value !== 'object' || !value.apiVersion || !value.kind)
    throw new CliError(`${name} holds something that is not a manifest: apiVersion or kind is missing`)
  if (value.kind === ManifestWork.kind)
    throw new CliError(`${name} holds a ManifestWork, which would be wrapped into another one`, {
      next: 'give the manifests that it is to deliver, or kubectl apply it in the namespace of the cluster',
    })
  const items = value.kind.endsWith('List') ? value['items'] : undefined
  return Array.isArray(items) ? items.flatMap((item) => flattened(name, item as Unstructured)) : [value]
}
