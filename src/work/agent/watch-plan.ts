import { parseKey } from '../../kube/index.ts'

/** What one watch of a kind follows. */
export interface Scope {
  readonly namespace?: string | undefined
  readonly name?: string | undefined
}

const mostSingle = 3
const mostNamespaces = 4

/** How narrow a kind is watched: object by object, namespace by namespace, or whole. A kind is never narrowed while it is in use. */
export type Width = 0 | 1 | 2

export const widthFor = (keys: Iterable<string>, atLeast: Width): Width => {
  if (atLeast === 2) return 2
  const all = [...keys]
  if (atLeast === 0 && all.length <= mostSingle) return 0
  const namespaces = new Set(all.map((key) => parseKey(key).namespace))
  return !namespaces.has(undefined) && namespaces.size <= mostNamespaces ? 1 : 2
}

/** The watches that cover these objects, by an id of their own. */
export const scopesFor = (keys: Iterable<string>, width: Width): Map<string, Scope> => {
  if (width === 2) return new Map([['*', {}]])
  const scopes = [...keys].map((key): [string, Scope] => {
    const { namespace, name } = parseKey(key)
    return width === 0 ? [key, { namespace, name }] : [`${namespace}/*`, { namespace }]
  })
  return new Map(scopes)
}

/** The id of the watch that covers an object. */
export const scopeOf = (key: string, width: Width): string =>
  width === 2 ? '*' : width === 1 ? `${parseKey(key).namespace}/*` : key
