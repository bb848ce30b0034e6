import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { KubeconfigError, codeOf, quoted } from './kubeconfig-error.ts'
import { FieldError, readDocument } from './kubeconfig-schema.ts'
import type { KubeconfigCluster, KubeconfigContext, KubeconfigDocument, KubeconfigUser } from './kubeconfig-schema.ts'
import { parseYaml } from './yaml-document.ts'

/** The environment of a process, always handed in. */
export type Environment = Readonly<Record<string, string | undefined>>

/** One cluster, user or context, and where it was written. */
export interface Entry<T> {
  readonly value: T
  /** The file or Secret, for messages. */
  readonly source: string
  /** Where relative paths start. Absent: the document may name neither files nor commands of this machine. */
  readonly folder: string | undefined
}

/** One or more kubeconfigs, merged. */
export interface Kubeconfig {
  /** What was read, in order of precedence. */
  readonly sources: readonly string[]
  /** What was looked for and is not there. */
  readonly missing: readonly string[]
  readonly currentContext: string | undefined
  readonly clusters: ReadonlyMap<string, Entry<KubeconfigCluster>>
  readonly users: ReadonlyMap<string, Entry<KubeconfigUser>>
  readonly contexts: ReadonlyMap<string, Entry<KubeconfigContext>>
}

/** As kubectl finds it: the path (which must exist), else each file of `$KUBECONFIG` (missing ones are skipped), else `~/.kube/config`. */
export const loadKubeconfig = async (options: {
  path?: string | undefined
  env: Environment
  home?: string | undefined
}): Promise<Kubeconfig> => {
  const home = options.home ?? options.env['HOME'] ?? options.env['USERPROFILE']
  const shown = (file: string): string =>
    home && file.startsWith(home + path.sep) ? `~${file.slice(home.length)}` : file

  if (options.path) {
    const text = await readText(options.path, shown(options.path))
    if (text === undefined) {
      const next = 'check the path given for the kubeconfig'
      throw new KubeconfigError({ source: shown(options.path), problem: 'the file does not exist', next })
    }
    return parseKubeconfig(text, { source: shown(options.path), folder: path.resolve(path.dirname(options.path)) })
  }

  const inHome = home ? [path.join(home, '.kube', 'config')] : []
  const files = options.env['KUBECONFIG'] ? options.env['KUBECONFIG'].split(path.delimiter) : inHome
  const found: Kubeconfig[] = []
  const missing: string[] = []
  for (const file of new Set(files.filter((name) => name !== ''))) {
    const source = shown(file)
    const text = await readText(file, source)
    if (text === undefined) missing.push(source)
    else found.push(await parseKubeconfig(text, { source, folder: path.resolve(path.dirname(file)) }))
  }
  return { ...mergeKubeconfigs(found), missing }
}

/** As kubectl merges: the first to name a cluster, user or context gives all of it; the first current-context wins. */
export const mergeKubeconfigs = (kubeconfigs: readonly Kubeconfig[]): Kubeconfig => {
  return {
    sources: kubeconfigs.flatMap((kubeconfig) => kubeconfig.sources),
    missing: kubeconfigs.flatMap((kubeconfig) => kubeconfig.missing),
    currentContext: kubeconfigs.find((kubeconfig) => kubeconfig.currentContext)?.currentContext,
    clusters: firstOfEach(kubeconfigs.map((kubeconfig) => kubeconfig.clusters)),
    users: firstOfEach(kubeconfigs.map((kubeconfig) => kubeconfig.users)),
    contexts: firstOfEach(kubeconfigs.map((kubeconfig) => kubeconfig.contexts)),
  }
}

const firstOfEach = <T>(maps: readonly ReadonlyMap<string, T>[]): ReadonlyMap<string, T> => {
  const all = new Map<string, T>()
  for (const [name, entry] of maps.flatMap((map) => [...map])) if (!all.has(name)) all.set(name, entry)
  return all
}

/**
 * Reads one document, such as one held in a Secret. `source` names it in errors.
 * Without `folder` it may name neither files nor commands: whoever may write the Secret must not read our disk or run programs here.
 */
export const parseKubeconfig = async (
  text: string,
  { source, folder }: { source: string; folder?: string | undefined },
): Promise<Kubeconfig> => {
  const fail = (problem: string, next: string): KubeconfigError => new KubeconfigError({ source, problem, next })
  const document = await readChecked(text, fail)
  const named = <T>(
    field: string,
    entries: (readonly [name: string | undefined, value: T])[] = [],
  ): ReadonlyMap<string, Entry<T>> => {
    const byName = new Map<string, Entry<T>>()
    for (const [index, [name, value]] of entries.entries()) {
      if (!name) throw fail(`${field}[${index}].name is missing`, 'give the entry a name')
      if (byName.has(name)) throw fail(`${field} has two entries named ${quoted(name)}`, 'remove or rename one of them')
      byName.set(name, { value, source, folder })
    }
    return byName
  }
  const { clusters, users, contexts } = document
  return {
    sources: [source],
    missing: [],
    currentContext: document['current-context'],
    clusters: named(
      'clusters',
      clusters?.map(({ name, cluster = {} }) => [name, cluster]),
    ),
    users: named(
      'users',
      users?.map(({ name, user = {} }) => [name, user]),
    ),
    contexts: named(
      'contexts',
      contexts?.map(({ name, context = {} }) => [name, context]),
    ),
  }
}

const readChecked = async (
  text: string,
  fail: (problem: string, next: string) => KubeconfigError,
): Promise<KubeconfigDocument> => {
  const { problem, value } = await parseYaml(text)
  if (problem) throw fail(`it is not one YAML document: ${problem}`, 'correct it there')
  try {
    const document = readDocument(value)
    const { apiVersion = 'v1', kind = 'Config' } = document
    if (apiVersion === 'v1' && kind === 'Config') return document
    throw fail(
      `it is a ${quoted(kind)} of ${quoted(apiVersion)}, not a kubeconfig`,
      'a kubeconfig has apiVersion "v1" and kind "Config"',
    )
  } catch (error) {
    if (error instanceof FieldError) throw fail(error.message, 'correct that field')
    throw error
  }
}

const readText = async (file: string, source: string): Promise<string | undefined> => {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    const code = codeOf(cause)
    if (code === 'ENOENT') return undefined
    const next = 'it must be a file that this process may read'
    throw new KubeconfigError({ source, problem: `the file cannot be read (${code})`, next, cause })
  }
}
