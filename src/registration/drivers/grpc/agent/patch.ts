import { equal } from '../../../../runtime/index.ts'

/** Changes that the API server would make, made here: over events only whole objects travel. What is given is never changed. */

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** JSON merge patch, RFC 7396. Undefined, which JSON does not have, leaves alone. */
export const merged = (base: unknown, patch: unknown): unknown => {
  if (!isRecord(patch)) return patch
  const result: Record<string, unknown> = isRecord(base) ? { ...base } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === undefined) continue
    if (value === null) delete result[key]
    else result[key] = merged(result[key], value)
  }
  return result
}

export interface Operation {
  op: string
  path: string
  value?: unknown
}

/** A `test` that does not hold, or a path that leads nowhere. */
export class PatchFailed extends Error {
  override name = 'PatchFailed'
}

/** The operations of RFC 6902 that are used here: test, add, replace and remove. As in Kubernetes, `test` with null holds where there is nothing. */
export const patched = (base: unknown, operations: readonly Operation[]): unknown =>
  operations.reduce((document, operation) => step(document, pathOf(operation.path), operation), base)

const pathOf = (path: string): string[] =>
  path === ''
    ? []
    : path
        .slice(1)
        .split('/')
        .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))

const step = (node: unknown, path: readonly string[], operation: Operation): unknown => {
  const [head, ...rest] = path
  if (head === undefined) return atPlace(node, operation)
  if (Array.isArray(node)) return inList(node as unknown[], head, rest, operation)
  if (!isRecord(node)) return missing(operation, node)
  const has = Object.hasOwn(node, head)
  if (rest.length > 0 || operation.op === 'test') {
    const value = has ? node[head] : undefined
    if (!has && operation.op !== 'test') throw new PatchFailed(`${operation.path} leads nowhere`)
    const next = step(value, rest, operation)
    return next === value ? node : { ...node, [head]: next }
  }
  if (!has && operation.op !== 'add') throw new PatchFailed(`there is no ${operation.path}`)
  if (operation.op !== 'remove') return { ...node, [head]: operation.value }
  const { [head]: _, ...left } = node
  return left
}

const inList = (list: readonly unknown[], head: string, rest: readonly string[], operation: Operation): unknown => {
  const index = head === '-' ? list.length : Number(head)
  const last = rest.length === 0 && operation.op === 'add' ? list.length : list.length - 1
  if (!/^(?:-|0|[1-9]\d*)$/.test(head) || index > last) return missing(operation, list)
  if (rest.length > 0 || operation.op === 'test') return list.with(index, step(list[index], rest, operation))
  if (operation.op === 'add') return list.toSpliced(index, 0, operation.value)
  return operation.op === 'remove' ? list.toSpliced(index, 1) : list.with(index, operation.value)
}

/** The whole of a place. */
const atPlace = (node: unknown, { op, path, value }: Operation): unknown => {
  if (op === 'test') {
    if (equal(node ?? null, value ?? null)) return node
    throw new PatchFailed(`${path} is not what was expected`)
  }
  if (op === 'add' || op === 'replace') return value
  throw new PatchFailed(`${op} cannot be done to ${path || 'the whole'}`)
}

const missing = ({ op, path, value }: Operation, node: unknown): unknown => {
  if (op === 'test' && (value ?? null) === null) return node
  throw new PatchFailed(`${path} leads nowhere`)
}
