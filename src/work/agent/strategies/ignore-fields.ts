import type { Unstructured } from '../../../kube/index.ts'
import { manifestHashAnnotation } from '../../contract.ts'
import { jsonPath, JsonPathError, type Found } from '../json-path.ts'
import { hashOf, type ManifestConfig } from '../manifest.ts'
import { ApplyProblem } from './strategy.ts'

type IgnoreField = NonNullable<
  NonNullable<NonNullable<ManifestConfig['updateStrategy']>['serverSideApply']>['ignoreFields']
>[number]

/**
 * The object to apply, with the fields that are left to others as they are on the cluster. They are stated with their
 * present value instead of being left out: a field that its last owner no longer states is removed by the server.
 */
export const leavingFields = (
  desired: Unstructured,
  present: Unstructured | undefined,
  rules: readonly IgnoreField[],
): Unstructured => {
  // A rule that cannot be read is told at once, not when the object is first there.
  const readable = rules.map((rule) => ({ ...rule, finders: findersOf(rule) }))
  const hash = hashOf(desired)
  const object = rules.some(({ condition }) => condition === 'OnSpokeChange') ? withHash(desired, hash) : desired
  if (!present) return object
  const unchanged = present.metadata.annotations?.[manifestHashAnnotation] === hash
  const left = structuredClone(object)
  for (const rule of readable) {
    // OnSpokeChange: a manifest that changed on the hub is applied whole, once.
    if (rule.condition === 'OnSpokeChange' && !unchanged) continue
    for (const find of rule.finders) leaveOne(left, find(desired), find(present))
  }
  return left
}

const withHash = (object: Unstructured, hash: string): Unstructured => ({
  ...object,
  metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, [manifestHashAnnotation]: hash } },
})

const findersOf = (rule: IgnoreField): ((root: unknown) => Found[])[] => {
  if (rule.jqPathExpressions?.length)
    throw new ApplyProblem(
      'ignoreFields with jqPathExpressions are not supported: write them as jsonPaths or jsonPointers',
      { ignoreFields: true },
    )
  try {
    return [...(rule.jsonPaths ?? []).map(jsonPath), ...(rule.jsonPointers ?? []).map(pointer)]
  } catch (error) {
    if (error instanceof JsonPathError) throw new ApplyProblem(`ignoreFields: ${error.message}`, { ignoreFields: true })
    throw error
  }
}

/** RFC 6901. */
const pointer = (text: string): ((root: unknown) => Found[]) => {
  if (!text.startsWith('/'))
    throw new ApplyProblem(`ignoreFields: JSON pointer "${text}" does not begin with "/"`, { ignoreFields: true })
  const at = text
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  return (root) => {
    let value = root
    for (const key of at) {
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return []
      value = (value as Record<string, unknown>)[key]
    }
    return [{ at, value }]
  }
}

/** The same path may lead to other places in the two objects: the first one found goes with the first. */
const leaveOne = (into: Unstructured, wanted: Found[], present: Found[]): void => {
  for (const [index, { at }] of wanted.entries()) {
    const parent = at.slice(0, -1).reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], into)
    const key = at.at(-1)!
    const there = present[index]
    if (there) (parent as Record<string, unknown>)[key] = there.value
    else if (!Array.isArray(parent)) delete (parent as Record<string, unknown>)[key]
  }
}
