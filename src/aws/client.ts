import { realClock, type Clock } from './clock.ts'
import type { Credentials } from './credentials.ts'
import { endpointOf, type EndpointOverrides, type Service } from './endpoints.ts'
import { AwsError, policyFor, reasonOf } from './errors.ts'
import { httpClient, HttpTimeout, type HttpAnswer } from './http.ts'
import { encoded, signed } from './sigv4.ts'
import { parseXml, textAt, type XmlElement } from './xml.ts'

export interface AwsOptions {
  endpoints?: EndpointOverrides | undefined
  /** For signing and time-outs. AWS refuses signatures that are more than 15 minutes (elsewhere 5) off its own time. */
  clock?: Clock | undefined
  timeoutMs?: number | undefined
  proxyEnv?: Record<string, string | undefined> | undefined
  ca?: string | undefined
  maxSockets?: number | undefined
  /** Told of each call and how it ended. */
  onCall?: ((call: AwsCall) => void) | undefined
}

/** One call, as it is counted. */
export interface AwsCall {
  service: Service
  operation: string
  region: string
  /** `ok`, or why it failed. */
  result: string
  seconds: number
}

export interface CallTarget {
  service: Service
  region: string
  /** Missing where AWS wants none, as with AssumeRoleWithWebIdentity. */
  credentials?: Credentials | undefined
  signal?: AbortSignal | undefined
}

/** What a query is asked with: nested as AWS documents it. */
export type QueryValue = string | number | boolean | undefined | readonly QueryValue[] | { [name: string]: QueryValue }

export interface QueryCall extends CallTarget {
  /** Of the API, such as `2011-06-15`. */
  version: string
  action: string
  parameters?: Record<string, QueryValue>
}

export interface JsonCall extends CallTarget {
  operation: string
  method: string
  /** With encoded segments: `pathOf('clusters', name)`. */
  path: string
  query?: Record<string, string | undefined>
  body?: unknown
}

/** AWS over its two protocols. One client serves all accounts and regions: who calls is said with each call. */
export interface AwsClient {
  /** The result element of STS, IAM, EC2 and load balancers. */
  query(call: QueryCall): Promise<XmlElement>
  /** What EKS answers. */
  json<T>(call: JsonCall): Promise<T>
  readonly endpoints: EndpointOverrides
  close(): void
}

/** A path from its segments. */
export const pathOf = (...segments: string[]): string => segments.map((segment) => `/${encoded(segment)}`).join('')

export const awsClient = (options: AwsOptions = {}): AwsClient => {
  const { endpoints = {}, clock = realClock, onCall } = options
  const http = httpClient({
    clock,
    timeoutMs: options.timeoutMs ?? 20_000,
    proxyEnv: options.proxyEnv,
    ca: options.ca,
    maxSockets: options.maxSockets ?? 64,
  })

  const send = async (operation: string, call: CallTarget, request: Unsigned): Promise<HttpAnswer> => {
    const { service, credentials, signal } = call
    const started = clock.now()
    const done = (result: string): void =>
      onCall?.({ service, operation, region: call.region, result, seconds: (clock.now() - started) / 1000 })
    try {
      const endpoint = endpointOf(service, call.region, endpoints)
      const url = new URL(request.path, endpoint.url)
      url.search = request.search ?? ''
      const unsigned = { ...request, url }
      const scope = { service, region: endpoint.region, now: clock.now() }
      const headers = credentials ? signed(unsigned, { ...scope, credentials }) : { ...request.headers, host: url.host }
      const answer = await http.send({ ...unsigned, headers, signal })
      if (answer.status >= 300) throw failed(operation, call, answer)
      done('ok')
      return answer
    } catch (error) {
      const failure = error instanceof AwsError ? error : unanswered(operation, call, error)
      done(failure.reason)
      throw failure
    }
  }

  return {
    endpoints,
    query: async (call) => {
      const flat = call.service === 'ec2' ? '' : '.member' // EC2 numbers the entries of a list under its own name
      const parameters = new URLSearchParams({ Action: call.action, Version: call.version })
      for (const [name, value] of flatten('', call.parameters ?? {}, flat)) parameters.append(name, value)
      const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' }
      const answer = await send(call.action, call, { method: 'POST', path: '/', headers, body: String(parameters) })
      return understood(call.action, call, () => parseXml(answer.body))
    },
    json: async <T>(call: JsonCall) => {
      const query = Object.entries(call.query ?? {}).flatMap(([name, value]) =>
        value === undefined ? [] : [`${encoded(name)}=${encoded(value)}`],
      )
      const body = call.body === undefined ? undefined : JSON.stringify(call.body)
      const answer = await send(call.operation, call, {
        method: call.method,
        path: call.path,
        search: query.join('&'),
        headers: body === undefined ? {} : { 'content-type': 'application/json' },
        body,
      })
      return understood(call.operation, call, () => (answer.body ? JSON.parse(answer.body) : {}) as T)
    },
    close: () => http.close(),
  }
}

interface Unsigned {
  method: string
  path: string
  search?: string | undefined
  headers: Record<string, string>
  body?: string | undefined
}

/** `Tags.member.1.Key`, as the query protocol wants lists and structures. */
const flatten = (name: string, value: QueryValue, member: string): [string, string][] => {
  if (value === undefined) return []
  if (typeof value !== 'object') return [[name, String(value)]]
  if (isList(value)) return value.flatMap((entry, i) => flatten(`${name}${member}.${i + 1}`, entry, member))
  return Object.entries(value).flatMap(([key, inner]) => flatten(name ? `${name}.${key}` : key, inner, member))
}

const isList = (value: QueryValue): value is readonly QueryValue[] => Array.isArray(value)

/** An answer that is not what AWS answers: somebody stands in between. */
const understood = <T>(operation: string, call: CallTarget, read: () => T): T => {
  try {
    return read()
  } catch (cause) {
    throw new AwsError({
      reason: 'Unavailable',
      message: `${where(operation, call)}: the answer cannot be understood`,
      next: 'see whether a proxy answers in place of AWS',
      cause,
    })
  }
}

const where = (operation: string, { service, region }: CallTarget): string => `${service} ${operation} in ${region}`

/** The failure that AWS tells in its answer: XML from the query services, JSON from EKS. */
const failed = (operation: string, call: CallTarget, { status, headers, body }: HttpAnswer): AwsError => {
  const told = toldIn(body)
  const code = String(headers['x-amzn-errortype'] ?? told.code ?? '').replace(/^.*#|:.*$/g, '')
  const reason = reasonOf(code, status, told.message)
  const after = Number(headers['retry-after'])
  return new AwsError({
    reason,
    code: code || undefined,
    action: `${call.service}:${operation}`,
    status,
    message: `${where(operation, call)}: ${code || `status ${status}`}${told.message ? `: ${told.message}` : ''}`,
    next: undefined,
    policy: policyFor(reason),
    requestId: told.requestId ?? (headers['x-amzn-requestid'] as string | undefined),
    retryAfterMs: Number.isFinite(after) ? after * 1000 : undefined,
  })
}

const toldIn = (body: string): { code?: string | undefined; message?: string; requestId?: string | undefined } => {
  try {
    if (body.trimStart().startsWith('{')) {
      const told = JSON.parse(body) as Record<string, string | undefined>
      return { code: told['__type'] ?? told['code'], message: clip(told['message'] ?? told['Message']) }
    }
    const xml = parseXml(body)
    // EC2 wraps its error once more than the others.
    const error = xml.children.find(({ name }) => name === 'Error') ?? xml.children[0]?.children[0]
    const requestId = textAt(xml, 'RequestId') ?? textAt(xml, 'RequestID')
    return error ? { code: textAt(error, 'Code'), message: clip(textAt(error, 'Message')), requestId } : {}
  } catch {
    return {}
  }
}

// AWS repeats what it was sent, a whole policy if need be; a token that it repeats must not get into a log.
const clip = (message = ''): string => {
  const safe = message.replaceAll(/eyJ[\w-]{8,}(\.[\w-]*)*/g, '<token>')
  return safe.length > 500 ? `${safe.slice(0, 500)}…` : safe
}

/** The failure of the way to AWS. Being told to stop is not one: it is passed on as it is. */
const unanswered = (operation: string, call: CallTarget, cause: unknown): AwsError => {
  if (call.signal?.aborted) throw cause
  const late = cause instanceof HttpTimeout
  const code = (cause as NodeJS.ErrnoException).code
  return new AwsError({
    reason: late ? 'TimedOut' : 'Unreachable',
    message: `${where(operation, call)}: ${late ? cause.message : `no connection${code ? ` (${code})` : ''}`}`,
    next: 'see whether the network, a proxy or an endpoint setting keeps the controller from AWS',
    cause,
  })
}
