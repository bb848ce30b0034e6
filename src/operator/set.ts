import { apiVersionOf, isNotFound, keyOf, type Api, type KubeObject, type Resource } from '../kube/index.ts'
import { applySet, withoutFinalizer, type Informer } from '../runtime/index.ts'

/** A kind that an operator keeps objects of, and its cache of those. */
export interface KeptKind<T extends KubeObject = KubeObject> {
  resource: Resource<T>
  cache: Pick<Informer<T>, 'get' | 'list' | 'on'>
}

/** Two caches of one kind, of different places, as one. */
export const joint = <T extends KubeObject>(
  a: KeptKind<T>['cache'],
  b: KeptKind<T>['cache'],
): KeptKind<T>['cache'] => ({
  get: (key) => a.get(key) ?? b.get(key),
  list: (namespace) => [...a.list(namespace), ...b.list(namespace)],
  on: (handler) => {
    const stops = [a.on(handler), b.on(handler)]
    return () => {
      for (const stop of stops) stop()
    }
  },
})

/** The kinds with any object type forgotten, as lists of them need it. */
export const kept = <T extends KubeObject>(resource: Resource<T>, cache: KeptKind<T>['cache']): KeptKind => ({
  resource,
  cache,
})

const identity = (object: KubeObject): string => `${object.apiVersion} ${object.kind} ${keyOf(object)}`

/** Cached objects that carry the label of an owner, typed, so that they can be compared and deleted. */
export const ownedBy = (kinds: readonly KeptKind[], label: string, owner: string): KubeObject[] =>
  kinds.flatMap(({ resource, cache }) =>
    cache
      .list()
      .filter(({ metadata }) => metadata.labels?.[label] === owner)
      .map((object) => ({ ...object, apiVersion: apiVersionOf(resource), kind: resource.kind })),
  )

/** Brings an owner's objects to their desired state and removes those that it should no longer have. Nothing is sent when nothing differs. */
export const applyOwned = async (
  client: Api,
  kinds: readonly KeptKind[],
  desired: readonly KubeObject[],
  {
    label,
    owner,
    spare = () => false,
    signal,
  }: {
    label: string
    owner: string
    /** Objects that stay though nobody asks for them. */
    spare?: (object: KubeObject) => boolean
    signal: AbortSignal
  },
): Promise<void> => {
  const wanted = new Set(desired.map(identity))
  const obsolete = ownedBy(kinds, label, owner).filter((object) => !wanted.has(identity(object)) && !spare(object))
  const targets = kinds.map(({ resource, cache }) => ({ resource, cache }))
  await applySet(desired, { client, targets, obsolete, fieldManager: 'lanyard-operator', signal })
}

/** With the label that says whose it is. */
export const labelled = <T extends KubeObject>(object: T, label: string, owner: string): T => ({
  ...object,
  metadata: { ...object.metadata, labels: { ...object.metadata.labels, [label]: owner } },
})

/** How status names an object that is kept. */
export const related = (kinds: readonly KeptKind[], object: KubeObject) => {
  const of = kinds.find(({ resource }) => resource.kind === object.kind)?.resource
  const { name, namespace } = object.metadata
  return {
    group: of?.group ?? '',
    version: of?.version ?? '',
    resource: of?.plural ?? '',
    ...(namespace ? { namespace } : {}),
    name: name!,
  }
}

/** Takes our finalizer off an object that nothing is left of. One that is already gone is no error. */
export const release = async <T extends KubeObject>(
  client: Api,
  resource: Resource<T>,
  object: T,
  { finalizer, signal }: { finalizer: string; signal: AbortSignal },
): Promise<void> => {
  const { name, uid, resourceVersion, finalizers } = withoutFinalizer(object, finalizer).metadata
  const merge = { metadata: { uid, resourceVersion, finalizers } }
  await client
    .of(resource)
    .patch(name!, { merge }, { signal })
    .catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
}
