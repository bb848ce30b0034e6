import type { ServerHttp2Stream } from 'node:http2'
import type { Clock } from '../runtime/index.ts'
import { Frames } from './frames.ts'
import { code, GrpcError } from './status.ts'

/** The one message that a request holds. */
export const bodyOf = (
  stream: ServerHttp2Stream,
  { limit, timeoutMs, clock, signal }: { limit: number; timeoutMs: number; clock: Clock; signal: AbortSignal },
): Promise<Buffer> => {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const frames = new Frames(limit)
  let message: Buffer | undefined
  const take = (chunk: Buffer): void => {
    try {
      for (const one of frames.push(chunk)) {
        if (message) throw new GrpcError(code.invalidArgument, 'a request holds one message, and this one has more')
        message = one
      }
    } catch (error) {
      reject(error)
    }
  }
  const end = (): void => {
    if (message && !frames.isPartial) resolve(message)
    else reject(new GrpcError(code.invalidArgument, 'the request ends before its message does'))
  }
  const cancel = clock.after(timeoutMs, () =>
    reject(new GrpcError(code.deadlineExceeded, `the request did not arrive within ${timeoutMs / 1000} s`)),
  )
  const gone = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', gone, { once: true })
  stream.on('data', take).once('end', end)
  return promise.finally(() => {
    cancel()
    signal.removeEventListener('abort', gone)
    stream.off('data', take).off('end', end)
  })
}
