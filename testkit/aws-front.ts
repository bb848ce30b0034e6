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

/** What the local AWS has answered. */
interface Answer {
  status: number
  text: string
}

/** A way to the local AWS that counts, can break, and can live in another time. */
export interface AwsFront {
  endpoint: string
  calls: SeenCall[]
  /** How often an action was called; with a role, for that role. */
  count: (action: string, roleArn?: string) => number
  fault: Fault
  /** What the caller hears in place of what the local AWS has answered. It sees lost answers too. */
  rewrite: (call: SeenCall, answer: Answer) => string
  /** While set, sessions begin and end by this clock: the local AWS itself knows real time only. */
  clock: Clock | undefined
}

/** Stands before the local AWS until the test ends. */
export const startAwsFront = async (t: TestContext, upstream: string): Promise<AwsFront> => {
  const ends = new Map<string, number>()
  const strict = asStrictAsAws()
  const stub = await stubHttp(t, (request, response) => {
    const refuse = (status: number, code: string, headers: Record<string, string> = {}): void => {
      response.writeHead(status, { 'content-type': 'text/xml', ...headers }).end(refusalText(code))
    }
    const serve = async (): Promise<void> => {
      const body = await text(request)
      const call = seen(request.url!, request.headers.authorization ?? '', request.headers.host!, body)
      front.calls.push(call)
      const fault = front.fault(call)
      if (fault === 'hang') return
      if (fault === 'cut') return void request.socket.destroy()
      const passOn = async (): Promise<Answer> => {
        const answer = await strict(call, () => pass(request.method!, request.url!, request.headers, body))
        return { ...answer, text: front.rewrite(call, answer) }
      }
      if (fault === 'lost') {
        await passOn()
        return void request.socket.destroy()
      }
      if (fault && 'body' in fault) return void response.writeHead(200, { 'content-type': 'text/xml' }).end(fault.body)
      if (fault) return refuse(fault.status, fault.code, fault.headers)
      const { clock } = front
      if (clock && clock.now() >= (ends.get(call.accessKeyId) ?? Number.POSITIVE_INFINITY))
        return refuse(403, 'ExpiredToken')
      const answer = await passOn()
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
  ): Promise<Answer> => {
    const http = process.getBuiltinModule('node:http')
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
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
    rewrite: (_call, { text }) => text,
    clock: undefined,
  }
  return front
}

const refusalText = (code: string): string =>
  `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>made by the test</Message></Error><RequestId>1</RequestId></ErrorResponse>`

/** What AWS sees to and the local one does not: one token gives one thing, and a block is taken once in a VPC. */
const asStrictAsAws = () => {
  const byToken = new Map<string, Promise<Answer>>()
  const taken = new Map<string, string>()
  const subnetIn = (text: string): string => /<subnetId>([^<]+)</.exec(text)?.[1] ?? ''
  return async ({ action, parameters }: SeenCall, send: () => Promise<Answer>): Promise<Answer> => {
    const token = parameters.get('ClientToken')
    if (token !== null) {
      const known = byToken.get(`${action} ${token}`) ?? send()
      byToken.set(`${action} ${token}`, known)
      const answer = await known
      if (answer.status >= 300) byToken.delete(`${action} ${token}`)
      return answer
    }
    const block = `${parameters.get('VpcId')} ${parameters.get('CidrBlock')}`
    if (action === 'CreateSubnet' && taken.has(block))
      return { status: 400, text: refusalText('InvalidSubnet.Conflict') }
    const answer = await send()
    if (action === 'CreateSubnet' && answer.status < 300) taken.set(block, subnetIn(answer.text))
    if (action === 'DeleteSubnet' && answer.status < 300)
      for (const [block, id] of taken) if (id === parameters.get('SubnetId')) taken.delete(block)
    return answer
  }
}

const seen = (url: string, authorization: string, host: string, body: string): SeenCall => {
  const query = new URL(url, 'http://any').searchParams
  const parameters = body ? new URLSearchParams(body) : query
  const credential = /Credential=([^/]+)/.exec(authorization)?.[1] ?? query.get('X-Amz-Credential')?.split('/')[0] ?? ''
  return { action: parameters.get('Action') ?? '', parameters, accessKeyId: credential, url, host }
}

/** Answers like this to the first few calls of each of these actions. */
export const first = (times: number, faults: Record<string, Exclude<ReturnType<Fault>, undefined>>): Fault => {
  const left = new Map(Object.keys(faults).map((action) => [action, times]))
  return ({ action }) => {
    const more = left.get(action) ?? 0
    left.set(action, more - 1)
    return more > 0 ? faults[action] : undefined
  }
}

/** What AWS says when it does not do something. */
export const refusal = (code: string, status = 400): { status: number; code: string } => ({ status, code })

/** An answer in which things say something else of themselves: `from`, where it follows the element with their id, becomes what `to` says. */
export const restated = (
  text: string,
  idElement: string,
  from: string,
  to: (id: string) => string | undefined,
): string =>
  text
    .split(new RegExp(`(?=<${idElement}>)`))
    .map((part) => {
      const id = new RegExp(`^<${idElement}>([^<]+)<`).exec(part)?.[1]
      return id === undefined ? part : part.replace(from, to(id) ?? from)
    })
    .join('')

const lists = ['Vpcs', 'Subnets', 'InternetGateways', 'NatGateways', 'Addresses', 'RouteTables', 'SecurityGroups']

/** The next answer of each list is empty, and then they are as they were: EC2 does not promise to show at once what it has. */
export const blind = (usual: Fault): Fault => {
  const left = new Set(lists.map((list) => `Describe${list}`))
  return (call) => (left.delete(call.action) ? { body: `<${call.action}Response/>` } : usual(call))
}
