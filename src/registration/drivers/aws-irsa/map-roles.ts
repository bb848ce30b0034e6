import type { Document, YAMLSeq } from 'yaml'
import type { Mapping } from './wanted.ts'

/** What is to become of `mapRoles`: entries to have, and roles to have none for. */
export interface MapRolesChange {
  set: readonly Mapping[]
  remove: readonly string[]
}

/** `mapRoles` is not what it should be; nothing of it is touched then. */
export class MapRolesError extends Error {
  override name = 'MapRolesError'
}

interface Entry {
  rolearn?: unknown
  username?: unknown
  groups?: unknown
}

/** Role ARNs are compared as the authenticator does: without regard to case. */
const keyOf = (arn: unknown): string => (typeof arn === 'string' ? arn.toLowerCase() : '')

const open = async (text: string): Promise<{ document: Document; entries: Entry[] }> => {
  const { parseDocument, isSeq } = await import('yaml')
  // The authenticator takes these for nothing, too.
  const plain = ['', '``', '""', "''"].includes(text.trim()) ? '' : text
  const document = parseDocument(plain, { keepSourceTokens: true, prettyErrors: false, logLevel: 'silent' })
  const error = document.errors[0]
  if (error) throw new MapRolesError(`it is not YAML (${error.code} at character ${error.pos[0]})`)
  const entries = valueOf(document)
  if (entries === null || entries === undefined) return { document, entries: [] }
  if (!isSeq(document.contents) || !Array.isArray(entries)) throw new MapRolesError('it is not a list of roles')
  return { document, entries: entries as Entry[] }
}

const valueOf = (document: Document): unknown => {
  try {
    return document.toJS({ maxAliasCount: 100 }) as unknown
  } catch {
    throw new MapRolesError('an alias in it is unknown, or aliases multiply without bound')
  }
}

/** The mappings in `mapRoles`, by role ARN in lower case. Where a role stands twice, the last entry counts. */
export const readMapRoles = async (text: string): Promise<Map<string, Mapping & { times: number }>> => {
  const { entries } = await open(text)
  const found = new Map<string, Mapping & { times: number }>()
  for (const entry of entries) {
    const key = keyOf(entry?.rolearn)
    if (!key) continue
    const groups = Array.isArray(entry.groups) ? entry.groups.map(String) : []
    const username = typeof entry.username === 'string' ? entry.username : ''
    found.set(key, { roleArn: String(entry.rolearn), username, groups, times: (found.get(key)?.times ?? 0) + 1 })
  }
  return found
}

/** Whether a role has this mapping and no other. */
export const isMapped = (found: ReadonlyMap<string, Mapping & { times: number }>, wanted: Mapping): boolean => {
  const has = found.get(keyOf(wanted.roleArn))
  return (
    has !== undefined &&
    has.times === 1 &&
    has.username === wanted.username &&
    JSON.stringify(has.groups) === JSON.stringify(wanted.groups)
  )
}

/** `mapRoles` with a change. Every other entry, comment, order and indentation stays as somebody wrote it. */
export const changedMapRoles = async (text: string, { set, remove }: MapRolesChange): Promise<string> => {
  const found = await readMapRoles(text)
  const missing = set.filter((mapping) => !isMapped(found, mapping))
  const going = new Set(
    [...remove, ...missing.map(({ roleArn }) => roleArn)].map(keyOf).filter((key) => found.has(key)),
  )
  if (missing.length === 0 && going.size === 0) return text
  const cut = going.size > 0 ? await without(text, going) : text
  return withMore(cut, missing)
}

/** Cuts entries out of the text, from their dash to the end of their last line. */
const without = async (text: string, going: ReadonlySet<string>): Promise<string> => {
  const { document, entries } = await open(text)
  const seq = document.contents as YAMLSeq<{ range?: [number, number, number] | null }>
  const gone = (index: number): boolean => going.has(keyOf(entries[index]?.rolearn))
  const token = seq.srcToken
  if (token?.type !== 'block-seq') return rewritten(document, seq, gone)
  const cuts = seq.items.flatMap((item, index) => {
    if (!gone(index)) return []
    const dash = token.items[index]?.start.find(({ type }) => type === 'seq-item-ind')
    if (!dash || !item.range) return []
    const from = text.lastIndexOf('\n', dash.offset - 1) + 1
    const last = text.slice(0, item.range[1]).trimEnd().length
    const end = text.indexOf('\n', last)
    return [[from, end < 0 ? text.length : end + 1] as const]
  })
  const kept = cuts.toReversed().reduce((rest, [from, to]) => rest.slice(0, from) + rest.slice(to), text)
  // Aliases of what was cut, two entries on one line: what cannot be cut is written anew.
  const expected = entries.filter((_, index) => !gone(index))
  const left = await open(kept).then(
    (now) => now.entries,
    () => undefined,
  )
  return JSON.stringify(left) === JSON.stringify(expected) ? kept : rewritten(document, seq, gone)
}

const rewritten = (document: Document, seq: YAMLSeq, gone: (index: number) => boolean): string => {
  for (let index = seq.items.length - 1; index >= 0; index--) if (gone(index)) seq.delete(index)
  return document.toString({ lineWidth: 0 })
}

/** Appends entries, indented as those before them. */
const withMore = async (text: string, added: readonly Mapping[]): Promise<string> => {
  if (added.length === 0) return text
  const { document, entries } = await open(text)
  const seq = document.contents as YAMLSeq | null
  const token = seq?.srcToken
  if (entries.length > 0 && token?.type !== 'block-seq') {
    for (const { roleArn, username, groups } of added)
      seq!.add(document.createNode({ rolearn: roleArn, username, groups }))
    return document.toString({ lineWidth: 0 })
  }
  const indent = ' '.repeat(entries.length > 0 && token?.type === 'block-seq' ? token.indent : 0)
  const isNothing = entries.length === 0 && !/^\s*#/m.test(text)
  const before = isNothing ? '' : entries.length === 0 ? text.replace(/^\s*(\[\s*\]|null|~|``|""|'')\s*$/m, '') : text
  const block = added.flatMap(({ roleArn, username, groups }) => [
    `- rolearn: ${roleArn}`,
    `  username: ${username}`,
    '  groups:',
    ...groups.map((group) => `    - ${group}`),
  ])
  const lines = block.map((line) => `${indent}${line}\n`).join('')
  return before === '' || before.endsWith('\n') ? before + lines : `${before}\n${lines}`
}
