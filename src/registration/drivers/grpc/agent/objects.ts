import {
  apiVersionOf,
  isConflict,
  isNotFound,
  keyOf,
  type CallOptions,
  type KubeObject,
  type ListOptions,
  type ObjectApi,
  type ObjectList,
  type Patch,
  type Resource,
  type WatchOptions,
  type WriteOptions,
} from '../../../../kube/index.ts'
import { equal } from '../../../../runtime/index.ts'
import type { Action, Side } from '../../../../events/index.ts'
import type { Feed, Wire } from './feed.ts'
import type { Link } from './link.ts'
import { merged, patched, PatchFailed } from './patch.ts'
import { selection } from './selection.ts'

/** One kind, and what its objects are kept in. */
export interface Place<T extends KubeObject> {
  readonly link: Link
  readonly feed: Feed<T>
  readonly wire: Wire<T>
  readonly resource: Resource<T>
  readonly namespace: string | undefined
}

/** What a write takes. */
export type UpdateOptions = WriteOptions & { subresource?: string | undefined }

/** How often a change that names no version is made anew on what somebody else has written meanwhile. */
const attempts = 4

/** The part of a kind's API that reads. */
export const readsOf = <T extends KubeObject>({ link, feed, wire, resource, namespace }: Place<T>) => {
  const keyFor = (name: string): string => (resource.namespaced && namespace ? `${namespace}/${name}` : name)
  const find = async (name: string, call: CallOptions = {}): Promise<T | undefined> => {
    try {
      await feed.refresh(call)
    } catch (error) {
      if (isNotFound(error)) return undefined // the hub does not serve this kind
      throw error
    }
    return feed.get(keyFor(name))
  }
  const list = async (options: ListOptions = {}): Promise<ObjectList<T>> => {
    const selects = selection({ ...options, namespace })
    await feed.refresh(options)
    return { metadata: {}, items: feed.list(selects) }
  }
  return {
    resource,
    namespace,
    keyFor,
    find,
    get: async (name: string, call: CallOptions = {}): Promise<T> => {
      const found = await find(name, call)
      if (found) return found
      throw link.refusal(404, `${resource.kind} ${keyFor(name)} does not exist on the hub`, wire.dataType, { name })
    },
    list,
    pages: async function* (options: ListOptions = {}) {
      yield await list(options)
    },
    watch: (options: WatchOptions = {}) => feed.watch({ ...options, namespace }),
  }
}

/** What this wire has no event for. */
export const refusals = <T extends KubeObject>(link: Link, resource: Resource<T>) => {
  const no = (verb: string) => async (): Promise<never> => {
    const message = `an agent that reaches its hub over gRPC cannot ${verb} ${resource.plural}`
    throw link.refusal(405, message, `${resource.group || 'core'}.${resource.version}.${resource.plural}`)
  }
  return {
    create: no('create'),
    update: no('update'),
    updateStatus: no('update the status of'),
    patch: no('patch'),
    apply: no('apply'),
    delete: no('delete'),
    deleteAll: no('delete'),
    subresource: no('use subresources of'),
  }
}

/** Kinds whose objects travel whole. A write is answered by how the object looks afterwards, as the hub tells it. */
export const objectsOf = <T extends KubeObject>(place: Place<T>): ObjectApi<T> => {
  const { link, feed, wire, resource } = place
  const { keyFor, ...reads } = readsOf(place)
  const typed = (object: T): T => ({ ...object, apiVersion: apiVersionOf(resource), kind: resource.kind })

  const send = (object: T, side: Side, action: Action, call: CallOptions): Promise<void> => {
    const { name, resourceVersion } = object.metadata
    const { dataType } = wire
    return link.publish({ dataType, side, action, resourceId: name, resourceVersion, data: typed(object) }, call)
  }
  const written = async (object: T, version: string | undefined, call: CallOptions): Promise<T> => {
    const now = await feed.after(keyFor(object.metadata.name!), version, call)
    if (now) return now
    throw link.refusal(404, `${resource.kind} ${keyOf(object)} is gone from the hub`, wire.dataType, {
      name: object.metadata.name!,
    })
  }
  const update = async (object: T, { subresource, signal, timeoutMs }: UpdateOptions = {}): Promise<T> => {
    const call = { signal, timeoutMs }
    await feed.live(call)
    await send(object, subresource === 'status' ? 'status' : 'spec', 'update_request', call)
    return written(object, object.metadata.resourceVersion, call)
  }
  const create = async (object: T, { signal, timeoutMs }: WriteOptions = {}): Promise<T> => {
    const call = { signal, timeoutMs }
    // Before it is made, so that its echo is heard.
    await feed.live(call)
    await send(object, 'spec', 'create_request', call)
    return written(object, undefined, call)
  }
  const updateStatus = (object: T, options: WriteOptions = {}): Promise<T> =>
    update(object, { ...options, subresource: 'status' })
  const patch = async (name: string, change: Patch, options: UpdateOptions = {}): Promise<T> => {
    await feed.live(options)
    for (let attempt = 1; ; attempt++) {
      const base = feed.get(keyFor(name)) ?? (await reads.get(name, options))
      const next = changed(place, base, change)
      if (equal(base, next)) return base
      try {
        return await update(next, options)
      } catch (error) {
        if (!isConflict(error) || attempt >= attempts || pins(change)) throw error
        await feed.after(keyFor(name), base.metadata.resourceVersion, options)
      }
    }
  }
  return { ...refusals(link, resource), ...reads, create, update, updateStatus, patch }
}

/** Whether whoever changes it has said which version that is meant for. */
const pins = (patch: Patch): boolean =>
  'merge' in patch && (patch.merge as Partial<KubeObject>)?.metadata?.resourceVersion !== undefined

/** The object as it would be after a patch; throws what the API server would answer. */
export const changed = <T extends KubeObject>({ link, wire, resource }: Place<T>, base: T, patch: Patch): T => {
  const about = `${resource.kind} ${keyOf(base)}`
  if ('merge' in patch) {
    const said = (patch.merge as Partial<KubeObject>).metadata ?? {}
    const isOther = said.uid !== undefined && said.uid !== base.metadata.uid
    if (isOther || (said.resourceVersion !== undefined && said.resourceVersion !== base.metadata.resourceVersion))
      throw link.refusal(409, `${about} has changed since it was read`, wire.dataType)
    return merged(base, patch.merge) as T
  }
  if (!('json' in patch)) throw link.refusal(415, `${about}: over gRPC there are no strategic merges`, wire.dataType)
  try {
    return patched(base, patch.json) as T
  } catch (error) {
    if (!(error instanceof PatchFailed)) throw error
    throw link.refusal(422, `${about}: ${error.message}`, wire.dataType)
  }
}
