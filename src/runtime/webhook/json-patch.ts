/** One step of a JSON Patch (RFC 6902); only the three that a difference needs. */
export type PatchOperation = { op: 'add' | 'replace'; path: string; value: unknown } | { op: 'remove'; path: string }

type Fields = Record<string, unknown>

/**
 * What turns one JSON value into another. Objects are compared field by field, so that what a handler did not touch is not
 * sent, and 64-bit numbers that JavaScript cannot hold stay as they are. Arrays of another length are replaced whole.
 */
export const jsonPatch = (before: unknown, after: unknown, path = ''): PatchOperation[] => {
  if (before === after) return []
  if (isFields(before) && isFields(after)) return fieldsPatch(before, after, path)
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length)
    return before.flatMap((one, index) => jsonPatch(one, after[index], `${path}/${index}`))
  return [{ op: 'replace', path, value: after }]
}

const fieldsPatch = (before: Fields, after: Fields, path: string): PatchOperation[] => {
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name))
  return [
    ...removed.map((name): PatchOperation => ({ op: 'remove', path: `${path}/${escaped(name)}` })),
    ...Object.entries(after).flatMap(([name, value]): PatchOperation[] => {
      const at = `${path}/${escaped(name)}`
      return Object.hasOwn(before, name) ? jsonPatch(before[name], value, at) : [{ op: 'add', path: at, value }]
    }),
  ]
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A field name inside a JSON Pointer (RFC 6901): the tilde goes first, or the slash's own tilde would be escaped again. */
const escaped = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')
