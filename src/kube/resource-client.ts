import type { ApiRequest, CallOptions, Client } from './client.ts'
import { ConnectionError, isExpired, isNotFound } from './errors.ts'
import type { KubeObject, ObjectList, Unstructured } from './objects.ts'
import { apiVersionOf, pathOf, type Resource } from './resource.ts'
import { openWatch, type WatchBatch, type WatchOptions } from './watch.ts'

export interface WriteOptions extends CallOptions {
  fieldManager?: string | undefined
  /** Validates and admits, but does not store. */
  dryRun?: boolean | undefined
}

export interface ListOptions extends CallOptions {
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
  /** Objects a page; all pages are fetched. */
  limit?: number | undefined
  /** '0' is served from the API server's cache. */
  resourceVersion?: string | undefined
  /** Names and labels only: the bodies stay on the server. */
  metadataOnly?: boolean | undefined
}

export interface DeleteOptions extends CallOptions {
  /** Deletes only the object that was seen. */
  preconditions?: { uid?: string | undefined; resourceVersion?: string | undefined } | undefined
  propagationPolicy?: 'Foreground' | 'Background' | 'Orphan' | undefined
  gracePeriodSeconds?: number | undefined
  dryRun?: boolean | undefined
}

/** A change, in one of the forms that the API knows. Strategic merges work for built-in kinds only. */
export type Patch =
  | { json: { op: string; path: string; value?: unknown }[] }
  | { merge: unknown }
  | { strategic: unknown }

const metadataAs = (kind: 'PartialObjectMetadata' | 'PartialObjectMetadataList'): string =>
  `application/json;as=${kind};g=meta.k8s.io;v=v1`

/** Reads and writes one kind. Objects that are written carry their own namespace; names are looked up in the client's. */
export class ResourceClient<T extends KubeObject> {
  readonly resource: Resource<T>
  readonly namespace: string | undefined
  readonly #client: Client

  constructor(client: Client, resource: Resource<T>, namespace?: string) {
    this.#client = client
    this.resource = resource
    this.namespace = namespace
  }

  async get(name: string, options: CallOptions & { resourceVersion?: string | undefined } = {}): Promise<T> {
    const { resourceVersion, ...call } = options
    return this.#client.json({ method: 'GET', path: this.#path(name), query: { resourceVersion }, ...call })
  }

  /** Undefined when it does not exist. */
  async find(name: string, options: CallOptions = {}): Promise<T | undefined> {
    return this.get(name, options).catch((error: unknown) => {
      if (isNotFound(error)) return undefined
      throw error
    })
  }

  /** All pages as one list. When the continue token expires in between, the list is fetched anew in one piece. */
  async list(options: ListOptions = {}): Promise<ObjectList<T>> {
    const items: T[] = []
    let last: ObjectList<T> | undefined
    try {
      for await (const page of this.pages(options)) {
        // Not push(...page.items): a page may have more items than a call may have arguments.
        for (const item of page.items) items.push(item)
        last = page
      }
    } catch (error) {
      if (last && options.limit !== 0 && isExpired(error)) return this.list({ ...options, limit: 0 })
      throw error
    }
    return { ...last!, items }
  }

  /** Page by page, so that a large list neither blocks nor fills the memory. */
  async *pages(options: ListOptions = {}): AsyncGenerator<ObjectList<T>> {
    const { labelSelector, fieldSelector, limit = 500, resourceVersion, metadataOnly, ...call } = options
    let next: string | undefined
    do {
      const page: ObjectList<T> = await this.#client.json({
        method: 'GET',
        path: this.#path(),
        // A continue token carries the resourceVersion; the API refuses both together.
        query: { labelSelector, fieldSelector, limit, continue: next, ...(next ? {} : { resourceVersion }) },
        ...(metadataOnly ? { accept: metadataAs('PartialObjectMetadataList') } : {}),
        ...call,
      })
      page.items = this.#itemsOf(page)
      yield page
      next = page.metadata?.continue || undefined
    } while (next)
  }

  /** Batches of events as they arrive, until the server or the signal ends the watch. */
  async watch(options: WatchOptions = {}): Promise<AsyncIterable<WatchBatch<T>>> {
    const accept = options.metadataOnly ? metadataAs('PartialObjectMetadata') : undefined
    return openWatch<T>(this.#client, this.#path(), options, accept)
  }

  async create(object: T, options: WriteOptions = {}): Promise<T> {
    const { namespace, name, generateName } = object.metadata
    const path = this.#path(undefined, { namespace: this.#namespaceOf(name ?? generateName, namespace) })
    return this.#write('POST', path, this.#typed(object), options)
  }

  /** Replaces the object; with a resourceVersion, only the one that was read. */
  async update(object: T, options: WriteOptions & { subresource?: string | undefined } = {}): Promise<T> {
    const { subresource, ...write } = options
    return this.#write('PUT', this.#pathTo(object, subresource), this.#typed(object), write)
  }

  async updateStatus(object: T, options: WriteOptions = {}): Promise<T> {
    return this.update(object, { ...options, subresource: 'status' })
  }

  async patch(
    name: string,
    patch: Patch,
    options: WriteOptions & { subresource?: string | undefined } = {},
  ): Promise<T> {
    const { subresource, ...write } = options
    const [contentType, body] = encodePatch(patch)
    return this.#write('PATCH', this.#path(name, { subresource }), body, write, { contentType })
  }

  /** Server-side apply: states the fields that `fieldManager` wants to own. */
  async apply(
    object: T,
    options: WriteOptions & { fieldManager: string; force?: boolean | undefined; subresource?: string | undefined },
  ): Promise<T> {
    const { subresource, force, ...write } = options
    return this.#write('PATCH', this.#pathTo(object, subresource), this.#typed(object), write, {
      contentType: 'application/apply-patch+yaml', // JSON is YAML
      query: { force },
    })
  }

  /** False when it was already gone. */
  async delete(name: string, options: DeleteOptions = {}): Promise<boolean> {
    const { signal, timeoutMs, dryRun, ...rest } = options
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', ...rest, ...(dryRun ? { dryRun: ['All'] } : {}) }
    try {
      await this.#client.json({ method: 'DELETE', path: this.#path(name), body, signal, timeoutMs })
      return true
    } catch (error) {
      if (isNotFound(error)) return false
      throw error
    }
  }

  /** Deletes all that match, in one request. The API allows it in one namespace only. */
  async deleteAll(options: { labelSelector?: string; fieldSelector?: string } & CallOptions = {}): Promise<void> {
    const { labelSelector, fieldSelector, ...call } = options
    const path = this.#path(undefined, { namespace: this.#namespaceOf('collection') })
    await this.#client.json({ method: 'DELETE', path, query: { labelSelector, fieldSelector }, ...call })
  }

  /** A subresource with a body of its own kind: `token`, `approval`, `scale`, `eviction`. */
  async subresource<R = Unstructured>(
    name: string,
    subresource: string,
    call: { method: 'GET' } | { method: 'POST' | 'PUT'; body: unknown },
    options: WriteOptions = {},
  ): Promise<R> {
    const path = this.#path(name, { subresource })
    if (call.method === 'GET') return this.#client.json({ method: 'GET', path, ...callOf(options) })
    return this.#write(call.method, path, call.body, options)
  }

  #write<R>(
    method: ApiRequest['method'],
    path: string,
    body: unknown,
    options: WriteOptions,
    extra: { contentType?: string; query?: ApiRequest['query'] } = {},
  ): Promise<R> {
    const { fieldManager, dryRun } = options
    return this.#client.json({
      method,
      path,
      body,
      contentType: extra.contentType,
      query: { fieldManager, dryRun: dryRun ? 'All' : undefined, ...extra.query },
      ...callOf(options),
    })
  }

  // Go writes an empty list as null. But whatever else answers in JSON must not be taken for a cluster with nothing in it.
  #itemsOf({ items }: { items?: T[] | null }): T[] {
    if (items !== undefined) return items ?? []
    const { server, source } = this.#client.connection
    throw new ConnectionError(
      { server, source, method: 'GET', path: this.#path() },
      { code: 'NOT_KUBERNETES', why: 'the answer is JSON, but not a list', next: 'check the server address' },
    )
  }

  // What comes from a list names neither.
  #typed(object: T): T {
    const { apiVersion = apiVersionOf(this.resource), kind = this.resource.kind } = object
    return { ...object, apiVersion, kind }
  }

  #pathTo(object: T, subresource: string | undefined): string {
    const { name, namespace } = object.metadata
    return this.#path(name ?? '', { namespace, subresource })
  }

  #path(name?: string, at: { namespace?: string | undefined; subresource?: string | undefined } = {}): string {
    const namespace = name === undefined ? (at.namespace ?? this.namespace) : this.#namespaceOf(name, at.namespace)
    return pathOf(this.resource, { namespace, name, subresource: at.subresource })
  }

  #namespaceOf(name: string | undefined, given?: string): string | undefined {
    const namespace = given || this.namespace
    if (this.resource.namespaced && !namespace)
      throw new Error(`${this.resource.kind} ${name} has no namespace: give one with client.of(resource, namespace)`)
    return namespace
  }
}

const callOf = (options: WriteOptions): CallOptions => ({ signal: options.signal, timeoutMs: options.timeoutMs })

const encodePatch = (patch: Patch): [contentType: string, body: unknown] => {
  if ('json' in patch) return ['application/json-patch+json', patch.json]
  if ('merge' in patch) return ['application/merge-patch+json', patch.merge]
  return ['application/strategic-merge-patch+json', patch.strategic]
}
