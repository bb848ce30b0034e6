import { mkdir, open, readFile, realpath, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { parseKubeconfig, writeKubeconfig } from '../../kube/index.ts'
import { CliError } from '../errors.ts'

const lists = ['clusters', 'users', 'contexts'] as const

/** Two kubeconfigs as one text: what the second names replaces what the first has under that name, and all else stays, comments too. */
export const mergedText = async (
  present: string,
  added: string,
  options: { source: string; use: boolean },
): Promise<string> => {
  await parseKubeconfig(present, { source: options.source, folder: '/' }) // says what is wrong with it, and where
  const { isMap, isSeq, parse, parseDocument } = await import('yaml')
  const more = parse(added) as Record<(typeof lists)[number], { name: string }[]> & { 'current-context': string }
  const document = parseDocument(present)
  if (!isMap(document.contents)) return added
  for (const list of lists) {
    const found = document.get(list)
    const entries = isSeq(found) ? found : document.createNode([])
    if (entries !== found) document.set(list, entries)
    for (const entry of more[list]) {
      const at = entries.items.findIndex((one) => isMap(one) && one.get('name') === entry.name)
      if (at < 0) entries.items.push(document.createNode(entry))
      else entries.items[at] = document.createNode(entry)
    }
    entries.flow = false
  }
  if (options.use || !document.get('current-context')) document.set('current-context', more['current-context'])
  return document.toString({ lineWidth: 0 })
}

/** Merges into a file, or makes it, for its owner alone; others who change kubeconfigs are kept out by the lock that kubectl takes. */
export const mergeInto = async (path: string, added: string, { use }: { use: boolean }): Promise<void> => {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const file = await realpath(path).catch(() => path) // a link to the real one stays a link
  const lock = `${file}.lock`
  const held = await open(lock, 'wx', 0o600).catch((cause: unknown) => {
    throw new CliError(`${file} is being changed by somebody else, or cannot be written`, {
      next: `try again; if no kubectl is at work, remove ${lock}`,
      cause,
    })
  })
  try {
    const present = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return ''
      throw error
    })
    await writeKubeconfig(file, present.trim() ? await mergedText(present, added, { source: file, use }) : added)
  } finally {
    await held.close()
    await rm(lock, { force: true })
  }
}
