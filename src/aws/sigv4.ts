import { createHash, createHmac } from 'node:crypto'
import type { Credentials } from './credentials.ts'

/** What is signed: as it will be sent, with `path` and query encoded. */
export interface Signable {
  method: string
  url: URL
  /** Small names. All of them are signed. */
  headers: Record<string, string>
  body?: string | undefined
}

/** For whom, where and when. */
export interface Scope {
  credentials: Credentials
  service: string
  region: string
  now: number
}

const algorithm = 'AWS4-HMAC-SHA256'

/** The headers of a request signed with Signature Version 4. */
export const signed = (request: Signable, scope: Scope): Record<string, string> => {
  const time = amzTime(scope.now)
  const { sessionToken } = scope.credentials
  const headers: Record<string, string> = {
    ...request.headers,
    host: request.url.host,
    'x-amz-date': time,
    ...(sessionToken ? { 'x-amz-security-token': sessionToken } : {}),
  }
  const names = Object.keys(headers).toSorted()
  const signature = signatureOf(request.method, request.url, headers, names, hash(request.body ?? ''), time, scope)
  const authorization = [
    `${algorithm} Credential=${scope.credentials.accessKeyId}/${scopeOf(time, scope)}`,
    `SignedHeaders=${names.join(';')}`,
    `Signature=${signature}`,
  ].join(', ')
  return { ...headers, authorization }
}

/** A URL that anybody can GET for a while in the name of who signed it; the headers given must then be sent too. */
export const presigned = (
  request: Pick<Signable, 'url' | 'headers'> & { expiresSeconds: number },
  scope: Scope,
): URL => {
  const time = amzTime(scope.now)
  const headers: Record<string, string> = { ...request.headers, host: request.url.host }
  const names = Object.keys(headers).toSorted()
  const url = new URL(request.url)
  const { accessKeyId, sessionToken } = scope.credentials
  const parameters = {
    'X-Amz-Algorithm': algorithm,
    'X-Amz-Credential': `${accessKeyId}/${scopeOf(time, scope)}`,
    'X-Amz-Date': time,
    'X-Amz-Expires': String(request.expiresSeconds),
    ...(sessionToken ? { 'X-Amz-Security-Token': sessionToken } : {}),
    'X-Amz-SignedHeaders': names.join(';'),
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.append(name, value)
  const signature = signatureOf('GET', url, headers, names, hash(''), time, scope)
  return new URL(`${url.origin}${url.pathname}?${canonicalQuery(url)}&X-Amz-Signature=${signature}`)
}

const signatureOf = (
  method: string,
  url: URL,
  headers: Record<string, string>,
  names: string[],
  bodyHash: string,
  time: string,
  scope: Scope,
): string => {
  const canonical = [
    method,
    // Every service but S3 signs the path encoded once more than it is sent.
    url.pathname.split('/').map(encoded).join('/'),
    canonicalQuery(url),
    ...names.map((name) => `${name}:${headers[name]!.trim().replaceAll(/ +/g, ' ')}`),
    '',
    names.join(';'),
    bodyHash,
  ].join('\n')
  const toSign = [algorithm, time, scopeOf(time, scope), hash(canonical)].join('\n')
  return hmac(signingKey(time, scope), toSign).toString('hex')
}

const signingKey = (time: string, { credentials, region, service }: Scope): Buffer =>
  [time.slice(0, 8), region, service, 'aws4_request'].reduce<Buffer>(
    (key, part) => hmac(key, part),
    Buffer.from(`AWS4${credentials.secretAccessKey}`),
  )

const scopeOf = (time: string, { region, service }: Scope): string =>
  `${time.slice(0, 8)}/${region}/${service}/aws4_request`

const canonicalQuery = (url: URL): string =>
  [...url.searchParams]
    .map(([name, value]) => [encoded(name), encoded(value)] as const)
    .toSorted(([a, x], [b, y]) => compare(a, b) || compare(x, y))
    .map((pair) => pair.join('='))
    .join('&')

// By code point, as AWS does: localeCompare would not.
const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

/** RFC 3986: encodeURIComponent leaves five characters that AWS encodes. */
export const encoded = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)

/** 20261115T215700Z */
const amzTime = (ms: number): string => new Date(ms).toISOString().replaceAll(/[-:]|\.\d+/g, '')

const hash = (text: string): string => createHash('sha256').update(text).digest('hex')
const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
