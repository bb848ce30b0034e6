import { installCrds } from '../api/index.ts'
import {
  CustomResourceDefinition,
  isConflict,
  isNotFound,
  keyOf,
  KindMapper,
  type Client,
  type KubeObject,
  type Resource,
} from '../kube/index.ts'
import { applySet, differs, inParallel, type Change } from '../runtime/index.ts'

export interface ApplyOptions {
  dryRun: boolean
  signal: AbortSignal
}

/** Who is named in managedFields. */
const fieldManager = 'clusteradm'

/** What became of each object that was not as it should be, as `Kind namespace/name`. */
export type Changes = Map<string, Change>

/**
 * Puts objects on a cluster in the order that they need: CRDs until they are served, then namespaces, then the rest. What is
 * there already and right is left alone. A dry run finds out what would change.
 */
export const applyAll = async (
  client: Client,
  objects: readonly KubeObject[],
  options: ApplyOptions,
): Promise<Changes> => {
  const isCrd = ({ kind }: KubeObject): boolean => kind === CustomResourceDefinition.kind
  const isNamespace = ({ kind }: KubeObject): boolean => kind === 'Namespace'
  const changes: Changes = new Map()
  const definitions = objects.filter(isCrd) as CustomResourceDefinition[]
  for (const [of, change] of await changedCrds(client, definitions, options)) changes.set(of, change)
  const kinds = new KindMapper(client)
  for (const wave of [objects.filter(isNamespace), objects.filter((object) => !isCrd(object) && !isNamespace(object))])
    for (const [of, change] of await applyWave(client, kinds, wave, options)) changes.set(of, change)
  return changes
}

const changedCrds = async (
  client: Client,
  definitions: CustomResourceDefinition[],
  { dryRun, signal }: ApplyOptions,
): Promise<Changes> => {
  const changes: Changes = new Map()
  const present = new Map<string, CustomResourceDefinition | undefined>()
  await inParallel(
    8,
    definitions.map(({ metadata: { name = '' } }) => async () => {
      present.set(name, await client.of(CustomResourceDefinition).find(name, { signal }))
    }),
  )
  for (const crd of definitions) {
    const was = present.get(crd.metadata.name!)
    if (!was) changes.set(`${crd.kind} ${keyOf(crd)}`, 'created')
    else if (differs(crd, was)) changes.set(`${crd.kind} ${keyOf(crd)}`, 'updated')
  }
  // Also when none differs: another run may have made them a moment ago, and they may not be served yet.
  if (!dryRun && definitions.length > 0) await installCrds(client, definitions, { fieldManager, signal })
  return changes
}

const applyWave = async (
  client: Client,
  kinds: KindMapper,
  objects: readonly KubeObject[],
  { dryRun, signal }: ApplyOptions,
): Promise<Changes> => {
  const resources = new Map<KubeObject, Resource<KubeObject> | undefined>()
  for (const object of objects)
    resources.set(object, dryRun ? await found(kinds, object, signal) : await kinds.of(object, { signal }))
  for (let tries = 0; ; tries++) {
    const present = new Map<string, KubeObject>()
    const idOf = (object: KubeObject): string => `${object.apiVersion} ${object.kind} ${keyOf(object)}`
    await inParallel(
      8,
      objects.map((object) => async () => {
        const resource = resources.get(object)
        const { name = '', namespace } = object.metadata
        const is = resource && (await client.of(resource, namespace).find(name, { signal }))
        if (is) present.set(idOf(object), is)
      }),
    )
    if (dryRun) return wouldChange(objects, (object) => present.get(idOf(object)))
    const targets = [...new Map(objects.map((one) => [`${one.apiVersion} ${one.kind}`, one])).values()].map((one) => ({
      resource: resources.get(one)!,
      cache: { get: (key: string) => present.get(`${one.apiVersion} ${one.kind} ${key}`) },
    }))
    try {
      return await applySet(objects, { client, targets, fieldManager, signal })
    } catch (error) {
      // Somebody else wrote in between: another run of ours, or the operator.
      const all = error instanceof AggregateError ? error.errors : [error]
      if (tries >= 5 || !all.every(isConflict)) throw error
    }
  }
}

const found = async (kinds: KindMapper, { apiVersion = '', kind = '' }: KubeObject, signal: AbortSignal) =>
  kinds.find({ apiVersion, kind }, { signal })

const wouldChange = (
  objects: readonly KubeObject[],
  presentOf: (object: KubeObject) => KubeObject | undefined,
): Changes => {
  const changes: Changes = new Map()
  for (const object of objects) {
    const is = presentOf(object)
    if (!is) changes.set(`${object.kind} ${keyOf(object)}`, 'created')
    else if (differs(object, is)) changes.set(`${object.kind} ${keyOf(object)}`, 'updated')
  }
  return changes
}

/** Deletes objects in their order, and names those that were there. Kinds that are not served have none. */
export const removeAll = async (
  client: Client,
  objects: readonly KubeObject[],
  { dryRun, signal }: ApplyOptions,
): Promise<KubeObject[]> => {
  const kinds = new KindMapper(client)
  const removed: KubeObject[] = []
  for (const object of objects) {
    const resource = await found(kinds, object, signal)
    if (!resource) continue
    const { name = '', namespace } = object.metadata
    const of = client.of(resource, namespace)
    const existed = dryRun
      ? (await of.find(name, { signal })) !== undefined
      : await of.delete(name, { signal, propagationPolicy: 'Background' }).catch((error: unknown) => {
          if (isNotFound(error)) return false
          throw error
        })
    if (existed) removed.push(object)
  }
  return removed
}
