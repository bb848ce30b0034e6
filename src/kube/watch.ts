import type { Readable } from 'node:stream'
import type { CallOptions, Client } from './client.ts'
import { ApiError, ConnectionError, type FailedRequest, type StatusBody } from './errors.ts'
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
  return decodeWatch<T>(answer.body, { server, source, method: 'WATCH', path })
}

/**
 * Splits a stream into lines and parses each. A line that is cut or is not JSON ends the watch with an error, as does an
 * ERROR event: the caller decides whether to list again.
 */
export async function* decodeWatch<T extends KubeObject>(
  stream: Readable,
  request: FailedRequest,
): AsyncGenerator<WatchBatch<T>> {
  let rest: Buffer[] = []
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const batch: WatchBatch<T> = []
      let start = 0
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
        const line = chunk.subarray(start, end)
        batch.push(parseEvent<T>(rest.length ? Buffer.concat([...rest, line]) : line, request))
        rest = []
        start = end + 1
      }
      if (start < chunk.length) rest.push(chunk.subarray(start))
      if (batch.length) yield batch
    }
  } catch (error) {
    if (error instanceof ApiError || error instanceof ConnectionError || isAbort(error)) throw error
    throw cut(request, 'the watch was cut', error)
  }
  if (rest.length) throw cut(request, 'the watch ended in the middle of an event')
}

const parseEvent = <T extends KubeObject>(line: Buffer, request: FailedRequest): WatchEvent<T> => {
  let event: { type?: string; object?: unknown }
  try {
    event = JSON.parse(line.toString('utf8')) as typeof event
  } catch (cause) {
    throw cut(request, 'the watch sent something that is not JSON', cause)
  }
  if (event.type === 'ERROR') {
    const status = event.object as StatusBody
    throw new ApiError(request, status.code ?? 500, status)
  }
  return event as WatchEvent<T>
}

const cut = (request: FailedRequest, why: string, cause?: unknown): ConnectionError =>
  new ConnectionError(request, { code: 'WATCH_CUT', why, next: 'it is opened again from where it was', cause })

const isAbort = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError'
