import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import type { Clock } from '../src/aws/index.ts'
import { stubHttp } from './stub-server.ts'

/** One call to the local AWS, as it came in. */
export interface SeenCall {
  action: string
  parameters: URLSearchParams
  /** Whose key signed it; empty where nobody did. */
  accessKeyId: string
  /** As it was sent, with its signature. */
  url: string
  /** Which host it was meant for. */
  host: string
}

/** What is answered in place of the local AWS; undefined passes the call on, `lost` does too and cuts the answer off. */
export type Fault = (
  call: SeenCall,
) =>
  | { status: number; code: string; headers?: Record<string, string> }
  | { body: string }
  | 'hang'
  | 'cut'
  | 'lost'
  | undefined

/** A way to the local AWS that counts, can break, and can live in another time. */
export interface AwsFront {
  endpoint: string
  calls: SeenCall[]
  /** How often an action was called; with a role, for that role. */
  count: (action: string, roleArn?: string) => number
  fault: Fault
  /** While set, sessions begin and end by this clock: the local AWS itself knows real time only. */
  clock: Clock | undefined
}

/** Stands before the local AWS until the test ends. */
export const startAwsFront = async (t: TestContext, upstream: string): Promise<AwsFront> => {
  const ends = new Map<string, number>()
  const stub = await stubHttp(t, (request, response) => {
    const refuse = (status: number, code: string, headers: Record<string, string> = {}): void => {
      const xml = `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>made by the test</Message></Error><RequestId>1</RequestId></ErrorResponse>`
      response.writeHead(status, { 'content-type': 'text/xml', ...headers }).end(xml)
    }
    const serve = async (): Promise<void> => {
      const body = await text(request)
      const call = seen(request.url!, request.headers.authorization ?? '', request.headers.host!, body)
      front.calls.push(call)
      const fault = front.fault(call)
      if (fault === 'hang') return
      if (fault === 'cut') return void request.socket.destroy()
      if (fault === 'lost') {
        await pass(request.method!, request.url!, request.headers, body)
        return void request.socket.destroy()
      }
      if (fault && 'body' in fault) return void response.writeHead(200, { 'content-type': 'text/xml' }).end(fault.body)
      if (fault) return refuse(fault.status, fault.code, fault.headers)
      const { clock } = front
      if (clock && clock.now() >= (ends.get(call.accessKeyId) ?? Number.POSITIVE_INFINITY))
        return refuse(403, 'ExpiredToken')
      const answer = await pass(request.method!, request.url!, request.headers, body)
      const inTime = clock
        ? moved(answer.text, clock.now() + Number(call.parameters.get('DurationSeconds') ?? 3600) * 1000)
        : answer.text
      response.writeHead(answer.status, { 'content-type': 'text/xml' }).end(inTime)
    }
    serve().catch(() => response.destroy())
  })
  const moved = (answer: string, end: number): string => {
    const keyId = /<AccessKeyId>([^<]+)</.exec(answer)?.[1]
    if (keyId) ends.set(keyId, end)
    return answer.replace(/<Expiration>[^<]+</, `<Expiration>${new Date(end).toISOString()}<`)
  }
  const pass = async (
    method: string,
    path: string,
    headers: NodeJS.Dict<string | string[]>,
    body: string,
  ): Promise<{ status: number; text: string }> => {
    const http = process.getBuiltinModule('node:http')
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
    const { connection: _connection, ...kept } = headers // the host stays: it is signed
    http
      .request(new URL(path, upstream), { method, headers: kept }, (answer) => {
        text(answer).then((received) => resolve({ status: answer.statusCode!, text: received }), reject)
      })
      .on('error', reject)
      .end(body)
    return promise
  }
  const front: AwsFront = {
    endpoint: stub.server,
    calls: [],
    count: (action, roleArn) =>
      front.calls.filter(
        (call) => call.action === action && (roleArn === undefined || call.parameters.get('RoleArn') === roleArn),
      ).length,
    fault: () => undefined,
    clock: undefined,
  }
  return front
}

const seen = (url: string, authorization: string, host: string, body: string): SeenCall => {
  const query = new URL(url, 'http://any').searchParams
  const parameters = body ? new URLSearchParams(body) : query
  const credential = /Credential=([^/]+)/.exec(authorization)?.[1] ?? query.get('X-Amz-Credential')?.split('/')[0] ?? ''
  return { action: parameters.get('Action') ?? '', parameters, accessKeyId: credential, url, host }
}
