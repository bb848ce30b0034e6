import type { KubeObject, Unstructured } from './objects.ts'

/** Where a kind lives in the API, and the TypeScript type of its objects. */
export interface Resource<T extends KubeObject = Unstructured> {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly namespaced: boolean
  /** Carries the type only; never set. */
  readonly objectType?: T
}

export const resource = <T extends KubeObject = Unstructured>(of: Omit<Resource, 'objectType'>): Resource<T> => of

/** `v1` for the core group, `group/version` for the others. */
export const apiVersionOf = (of: { group: string; version: string }): string =>
  of.group === '' ? of.version : `${of.group}/${of.version}`

/** The path of a collection, an object or its subresource. Names are escaped: they may come from anywhere. */
export const pathOf = (
  of: Resource<KubeObject>,
  at: { namespace?: string | undefined; name?: string | undefined; subresource?: string | undefined } = {},
): string => {
  const root = of.group === '' ? `/api/${of.version}` : `/apis/${of.group}/${of.version}`
  const scope = of.namespaced && at.namespace ? `/namespaces/${segment(of, 'namespace', at.namespace)}` : ''
  const object = at.name === undefined ? '' : `/${segment(of, 'name', at.name)}`
  const subresource = at.subresource ? `/${at.subresource}` : ''
  return `${root}${scope}/${of.plural}${object}${subresource}`
}

// These would lead to another path: without a name to all objects, with dots to the ones above.
const segment = (of: Resource<KubeObject>, what: string, name: string): string => {
  if (name === '' || name === '.' || name === '..' || !name.isWellFormed())
    throw new Error(`${JSON.stringify(name)} cannot be the ${what} of a ${of.kind}: give the one that is meant`)
  return encodeURIComponent(name)
}
