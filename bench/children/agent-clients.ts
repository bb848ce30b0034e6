import { readFileSync } from 'node:fs'
import { clientFor, type Client, type ClientOptions } from '../../src/kube/index.ts'
import { issue, type KeyPair } from '../../src/runtime/pki/index.ts'

const day = 86_400_000

/** A credential of its own for each agent of a process. */
export const credentialFor = (authority: KeyPair, commonName: string, organizations: string[]) => {
  const now = Date.now()
  const { cert, key } = issue(authority, {
    commonName,
    organizations,
    usages: ['client'],
    notBefore: new Date(now - day),
    notAfter: new Date(now + day),
  })
  return { ca: authority.cert, cert, key }
}

/** Clients for the agents of a process, whose requests are counted together. */
export class AgentClients {
  readonly authority: KeyPair
  requests = 0
  writes = 0
  /** Writes that a busy API server asked to send later: it has not looked at them. */
  putOff = 0
  readonly #server: string
  readonly #options: ClientOptions

  constructor(server: string, files: { cert: string; key: string }, options: ClientOptions) {
    this.authority = { cert: readFileSync(files.cert, 'utf8'), key: readFileSync(files.key, 'utf8') }
    this.#server = server
    this.#options = { ...options, onAnswer: ({ method, status }) => this.#count(method, status) }
  }

  of(commonName: string, organizations: string[]): Client {
    const credential = credentialFor(this.authority, commonName, organizations)
    return clientFor({ source: commonName, server: this.#server, credentials: async () => credential }, this.#options)
  }

  #count(method: string, status: number): void {
    this.requests++
    if (method === 'GET') return
    if (status === 429) this.putOff++
    else this.writes++
  }
}
