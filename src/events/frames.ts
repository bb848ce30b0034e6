import { code, GrpcError } from './status.ts'

/** A gRPC message has a flag and its length before it. */
export const prefixLength = 5

/** Fills in the prefix of a message that was written with room for it. */
export const framed = (message: Buffer): Buffer => {
  message[0] = 0 // not compressed
  message.writeUInt32BE(message.length - prefixLength, 1)
  return message
}

/** Puts chunks together to messages. Nothing is kept of a message that is too long: its prefix already ends the call. */
export class Frames {
  readonly #limit: number
  #chunks: Buffer[] = []
  #size = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Whether it holds the beginning of a message whose end has not come. */
  get isPartial(): boolean {
    return this.#size > 0
  }

  /** The messages that this chunk completes. */
  *push(chunk: Buffer): Generator<Buffer> {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    while (this.#size >= prefixLength) {
      const head = this.#peek()
      if (head[0] !== 0)
        throw new GrpcError(code.unimplemented, 'the message is compressed: send it as it is (grpc-encoding: identity)')
      const length = head.readUInt32BE(1)
      if (length > this.#limit)
        throw new GrpcError(
          code.resourceExhausted,
          `the message has ${length} bytes, and ${this.#limit} are the most that is taken`,
        )
      const whole = prefixLength + length
      if (this.#size < whole) return
      const all = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)
      this.#chunks = all.length > whole ? [all.subarray(whole)] : []
      this.#size -= whole
      yield all.subarray(prefixLength, whole)
    }
  }

  #peek(): Buffer {
    if (this.#chunks[0]!.length < prefixLength) this.#chunks = [Buffer.concat(this.#chunks)]
    return this.#chunks[0]!
  }
}
