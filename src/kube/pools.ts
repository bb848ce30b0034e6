import type http from 'node:http'
import type { Connection, Credential } from './connection.ts'
import { tlsOptions, type Dialing } from './dial.ts'
import { closeIdle, http1Agent } from './http1.ts'
import type { PingOptions } from './http2-session.ts'
import { Http2Sessions } from './http2.ts'

export interface PoolOptions extends PingOptions {
  maxConnections: number
  connectTimeoutMs: number
}

/** The connections that were made with one credential. */
export class Pool {
  readonly credential: Credential
  readonly http1: http.Agent
  /** Only over TLS: what comes after the handshake is agreed on in it. */
  readonly http2: Http2Sessions | undefined
  readonly #ending = new AbortController()
  #users = 0
  #retired = false

  constructor(connection: Connection, credential: Credential, options: PoolOptions) {
    const { ca } = credential
    const dialing: Dialing = { connection, ca, timeoutMs: options.connectTimeoutMs, ending: this.#ending.signal }
    const tls = tlsOptions(connection, credential)
    this.credential = credential
    this.http1 = http1Agent(tls, options.maxConnections, dialing)
    this.http2 = connection.server.startsWith('http:') ? undefined : new Http2Sessions(tls, dialing, options)
  }

  enter(): this {
    this.#users++
    return this
  }

  leave(): void {
    this.#users--
    if (this.#retired && this.#users === 0) this.close()
  }

  /** Nobody enters any more. What is under way finishes. */
  retire(): void {
    this.#retired = true
    closeIdle(this.http1)
    if (this.#users === 0) this.close()
  }

  /** After one connection was found dead. */
  closeIdle(): void {
    closeIdle(this.http1)
  }

  get closed(): boolean {
    return this.#ending.signal.aborted
  }

  close(): void {
    this.#ending.abort(new Error('the connections were closed'))
    this.http1.destroy()
  }
}

/** One pool at a time: a new one when the certificates change, while what is under way finishes in the old. */
export class Pools {
  readonly #connection: Connection
  readonly #options: PoolOptions
  #current: Pool | undefined
  readonly #retired = new Set<Pool>()

  constructor(connection: Connection, options: PoolOptions) {
    this.#connection = connection
    this.#options = options
  }

  enter(credential: Credential): Pool {
    if (this.#current && sameTls(this.#current.credential, credential)) return this.#current.enter()
    // Somebody who is late brings the credential of before: it must not drive out the newer one.
    for (const pool of this.#retired) {
      if (pool.closed) this.#retired.delete(pool)
      else if (sameTls(pool.credential, credential)) return pool.enter()
    }
    const pool = new Pool(this.#connection, credential, this.#options)
    if (this.#current) this.#retired.add(this.#current)
    this.#current?.retire()
    this.#current = pool
    return pool.enter()
  }

  close(): void {
    for (const pool of this.#retired) pool.close()
    this.#current?.close()
  }
}

const sameTls = (a: Credential, b: Credential): boolean =>
  a === b || (a.ca === b.ca && a.cert === b.cert && a.key === b.key)
