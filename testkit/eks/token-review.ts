import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** As EKS calls the ways in which it maps IAM roles to groups. */
export type AuthenticationMode = 'CONFIG_MAP' | 'API_AND_CONFIG_MAP' | 'API'

export interface TokenReviewOptions {
  /** Reviews by access entries: the local AWS. */
  entries: string
  /** Reviews by `aws-auth`: the webhook kubeconfig of the authenticator. */
  authenticator: string
  mode: () => AuthenticationMode
}

/**
 * The token webhook of a hub whose authentication mode changes while it runs. The API server can be told of one webhook only,
 * and EKS has both behind it: access entries are asked first, then `aws-auth`, each where the mode has it.
 */
export const startTokenReview = async (
  options: TokenReviewOptions,
): Promise<{ server: string; stop: () => Promise<void> }> => {
  const byEntries = (review: Buffer): Promise<string> => post(http, new URL(options.entries), review)
  const byConfigMap = (review: Buffer): Promise<string> => {
    const config = readFileSync(options.authenticator, 'utf8')
    const value = (key: string): string => new RegExp(`${key}: (\\S+)`).exec(config)![1]!
    const ca = Buffer.from(value('certificate-authority-data'), 'base64')
    return post(https, new URL(value('server')), review, ca)
  }
  const review = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const asked = await buffer(request)
    const mode = options.mode()
    const entries = mode === 'CONFIG_MAP' ? undefined : await byEntries(asked)
    const decided = mode === 'API' || (entries && isAuthenticated(entries))
    response.writeHead(200, { 'content-type': 'application/json' }).end(decided ? entries : await byConfigMap(asked))
  }
  const server = http.createServer(
    (request, response) => void review(request, response).catch(() => response.destroy()),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const isAuthenticated = (answer: string): boolean =>
  (JSON.parse(answer) as { status?: { authenticated?: boolean } }).status?.authenticated === true

const post = async (over: typeof http | typeof https, url: URL, body: Buffer, ca?: Buffer): Promise<string> => {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const headers = { 'content-type': 'application/json', 'content-length': body.length }
  over
    .request(url, { method: 'POST', headers, ...(ca && { ca }) }, resolve)
    .on('error', reject)
    .end(body)
  return (await buffer(await promise)).toString()
}
