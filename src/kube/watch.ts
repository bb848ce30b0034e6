import type { Readable } from 'node:stream'
import type { CallOptions, Client } from './client.ts'
import { ApiError, ConnectionError, type FailedRequest, type StatusBody } from './errors.ts'
import { withoutManagedFields } from './managed-fields.ts'
import type { KubeObject } from './objects.ts'

export interface WatchOptions extends CallOptions {
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
  resourceVersion?: string | undefined
  /** The server ends the watch after this long; ask for different times so that many watches do not end together. */
  timeoutSeconds?: number | undefined
  /** Streams the present objects first, ended by a bookmark (KEP-3157), instead of a list. */
  sendInitialEvents?: boolean | undefined
  metadataOnly?: boolean | undefined
}

export type WatchEvent<T extends KubeObject> =
  | { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: T }
  /** Carries only a resourceVersion, and says that everything up to it has been sent. */
  | { type: 'BOOKMARK'; object: KubeObject }

export type WatchBatch<T extends KubeObject> = WatchEvent<T>[]

/** The annotation on the bookmark that ends the initial events of a streaming list. */
export const initialEventsEnd = 'k8s.io/initial-events-end'

/** Opens a watch. Its events come in the batches in which they arrived: one turn of the loop for each, not for each event. */
export const openWatch = async <T extends KubeObject>(
  client: Client,
  path: string,
  options: WatchOptions,
  accept: string | undefined,
): Promise<AsyncIterable<WatchBatch<T>>> => {
  const { signal, timeoutMs, metadataOnly: _, sendInitialEvents, ...query } = options
  const initial = sendInitialEvents ? { sendInitialEvents, resourceVersionMatch: 'NotOlderThan' } : {}
  const answer = await client.stream({
    method: 'GET',
    path,
    query: { watch: true, allowWatchBookmarks: true, ...query, ...initial },
    accept,
    signal,
    timeoutMs,
  })
  const { server, source } = client.connection
  return decodeWatch<T>(answer.body, { server, source, method: 'WATCH', path }, signal)
}

/**
 * Splits a stream into lines and parses each. A line that is cut or is not JSON ends the watch with an error, as does an
 * ERROR event: the caller decides whether to list again. What came before it is given first.
 */
export async function* decodeWatch<T extends KubeObject>(
  stream: Readable,
  request: FailedRequest,
  signal?: AbortSignal,
): AsyncGenerator<WatchBatch<T>> {
  let rest: Buffer[] = []
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const last = chunk.lastIndexOf(newline)
      if (last < 0) {
        rest.push(chunk)
        continue
      }
      const lines = rest.length ? Buffer.concat([...rest, chunk.subarray(0, last)]) : chunk.subarray(0, last)
      rest = last + 1 < chunk.length ? [chunk.subarray(last + 1)] : []
      const { batch, failure } = parseLines<T>(lines, request)
      if (batch.length) yield batch
      if (failure) throw failure
    }
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof ApiError || error instanceof ConnectionError) throw error
    throw cut(request, 'the watch was cut', error)
  }
  if (rest.length) throw cut(request, 'the watch ended in the middle of an event')
}

const newline = 10

const parseLines = <T extends KubeObject>(
  lines: Buffer,
  request: FailedRequest,
): { batch: WatchBatch<T>; failure?: ApiError | ConnectionError } => {
  const batch: WatchBatch<T> = []
  for (let start = 0; start <= lines.length;) {
    const end = lines.indexOf(newline, start)
    const line = lines.toString('utf8', start, end < 0 ? lines.length : end)
    start = end < 0 ? lines.length + 1 : end + 1
    if (line === '') continue
    const event = parseEvent(line, request)
    if (event instanceof Error) return { batch, failure: event }
    batch.push(event as WatchEvent<T>)
  }
  return { batch }
}

const parseEvent = (line: string, request: FailedRequest): WatchEvent<KubeObject> | ApiError | ConnectionError => {
  let event: { type?: unknown; object?: { metadata?: unknown } | null } | null
  try {
    event = JSON.parse(withoutManagedFields(line)) as typeof event
  } catch (cause) {
    return cut(request, 'the watch sent something that is not JSON', cause)
  }
  if (event?.type === 'ERROR') {
    const status = (event.object ?? {}) as StatusBody
    return new ApiError(request, status.code ?? 500, status)
  }
  if (!eventTypes.has(event?.type) || !event?.object?.metadata)
    return cut(request, 'the watch sent JSON that is not an event')
  return event as WatchEvent<KubeObject>
}

const eventTypes = new Set<unknown>(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'])

const cut = (request: FailedRequest, why: string, cause?: unknown): ConnectionError =>
  new ConnectionError(request, { code: 'WATCH_CUT', why, next: 'open it again from the last event that came', cause })
