import type http from 'node:http'
import https from 'node:https'
import { text } from 'node:stream/consumers'
import type { Clock } from './clock.ts'

// Asked for and not imported: as a module its lazy getters run, and load all of undici (5 MB and 30 ms).
const nodeHttp = process.getBuiltinModule('node:http')

export interface HttpRequest {
  method: string
  url: URL
  headers: Record<string, string>
  body?: string | undefined
  signal?: AbortSignal | undefined
}

export interface HttpAnswer {
  status: number
  headers: http.IncomingHttpHeaders
  body: string
}

export interface HttpOptions {
  clock: Clock
  /** From the first byte sent to the last one received. */
  timeoutMs: number
  /** `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, as Node's own agents read them. */
  proxyEnv?: Record<string, string | undefined> | undefined
  /** Trusted beside the system's roots, as PEM. */
  ca?: string | undefined
  /** Open connections to one host. */
  maxSockets: number
}

/** The answer did not come in time. */
export class HttpTimeout extends Error {
  override name = 'HttpTimeout'
}

export interface Http {
  send(request: HttpRequest): Promise<HttpAnswer>
  close(): void
}

/** No answer of AWS that we ask for is larger. */
const largestAnswer = 8 * 1024 * 1024

/** Sends requests over kept connections. */
export const httpClient = (options: HttpOptions): Http => {
  const kept = {
    keepAlive: true,
    maxSockets: options.maxSockets,
    maxFreeSockets: 4,
    timeout: 15_000, // AWS closes idle connections after 20 s and more; we do it first
    ...(options.proxyEnv ? { proxyEnv: options.proxyEnv } : {}),
  }
  const plain = new nodeHttp.Agent(kept)
  const secure = new https.Agent({ ...kept, ...(options.ca ? { ca: options.ca } : {}) })
  const once = (request: HttpRequest): Promise<HttpAnswer> => sendOnce(request, plain, secure, options)
  return {
    send: async (request) => {
      try {
        return await once(request)
      } catch (error) {
        // The server closed a kept connection while our request was on its way: it was not read. Once more, on a new one.
        if (!(error instanceof StaleConnection) || request.signal?.aborted) throw error
        return once(request)
      }
    },
    close: () => {
      plain.destroy()
      secure.destroy()
    },
  }
}

class StaleConnection extends Error {}

const sendOnce = async (
  request: HttpRequest,
  plain: http.Agent,
  secure: https.Agent,
  { clock, timeoutMs }: HttpOptions,
): Promise<HttpAnswer> => {
  request.signal?.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>()
  const isPlain = request.url.protocol === 'http:'
  const body = request.body === undefined ? undefined : Buffer.from(request.body)
  const outgoing = (isPlain ? nodeHttp : https).request(request.url, {
    agent: isPlain ? plain : secure,
    method: request.method,
    headers: { ...request.headers, ...(body ? { 'content-length': String(body.length) } : {}) },
  })
  const stop = (why: unknown): void => {
    reject(why)
    outgoing.destroy()
  }
  const cancel = clock.after(timeoutMs, () => stop(new HttpTimeout(`no answer within ${timeoutMs / 1000} s`)))
  const abort = (): void => stop(request.signal!.reason)
  request.signal?.addEventListener('abort', abort, { once: true })
  outgoing.on('error', (error: NodeJS.ErrnoException) => {
    const stale = outgoing.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
    reject(stale ? new StaleConnection('closed meanwhile', { cause: error }) : error)
  })
  outgoing.once('response', (incoming) => {
    let size = 0
    incoming.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > largestAnswer) stop(new Error(`the answer is larger than ${largestAnswer} bytes`))
    })
    const answer = async (): Promise<HttpAnswer> => {
      const received = await text(incoming)
      return { status: incoming.statusCode ?? 0, headers: incoming.headers, body: received }
    }
    answer().then(resolve, reject)
  })
  outgoing.end(body)
  try {
    return await promise
  } finally {
    cancel()
    request.signal?.removeEventListener('abort', abort)
  }
}
