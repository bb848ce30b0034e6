/** What the API server said, as a `Status` object. */
export interface StatusBody {
  kind?: string
  status?: string
  reason?: string
  message?: string
  code?: number
  details?: {
    name?: string
    group?: string
    kind?: string
    uid?: string
    retryAfterSeconds?: number
    causes?: { reason?: string; message?: string; field?: string }[]
  }
}

export interface FailedRequest {
  /** Which API server, and which context or file led us there. */
  server: string
  source: string
  method: string
  path: string
}

/** The API server answered, and the answer was no. Ask with `isNotFound` and its siblings; never parse the message. */
export class ApiError extends Error {
  override name = 'ApiError'
  readonly status: number
  readonly reason: string
  readonly serverMessage: string
  readonly details: NonNullable<StatusBody['details']>
  /** What the server asked us to wait before another try. */
  readonly retryAfterMs: number | undefined
  readonly request: FailedRequest

  constructor(request: FailedRequest, status: number, body: StatusBody, retryAfterMs?: number, next?: string) {
    const reason = body.reason || reasonOf(status)
    const said = body.message || 'no message'
    super(`${placeOf(request)}: ${status} ${reason}: ${said}${next ? `; ${next}` : ''}`)
    this.status = status
    this.reason = reason
    this.serverMessage = said
    this.details = body.details ?? {}
    this.retryAfterMs = retryAfterMs ?? millisecondsOf(body.details?.retryAfterSeconds)
    this.request = request
  }
}

/** No answer, or one that is not Kubernetes: the connection, TLS, a proxy or the address is at fault. */
export class ConnectionError extends Error {
  override name = 'ConnectionError'
  readonly code: string
  readonly request: FailedRequest
  /** The server certainly did not act on the request, so that it can be sent again whatever it was. */
  readonly notSent: boolean

  constructor(
    request: FailedRequest,
    options: { code: string; why: string; next: string; notSent?: boolean; cause?: unknown },
  ) {
    super(`${placeOf(request)}: ${options.why}; ${options.next}`, { cause: options.cause })
    this.code = options.code
    this.request = request
    this.notSent = options.notSent ?? false
  }
}

const placeOf = ({ method, path, server, source }: FailedRequest): string =>
  `${method} ${path} at ${server} (${source})`

const millisecondsOf = (seconds: number | undefined): number | undefined => (seconds ? seconds * 1000 : undefined)

// Some answers carry no Status body (a proxy in between, an aggregated API): the code says what it was.
const reasonOf = (status: number): string =>
  ({
    400: 'BadRequest',
    401: 'Unauthorized',
    403: 'Forbidden',
    404: 'NotFound',
    405: 'MethodNotAllowed',
    406: 'NotAcceptable',
    409: 'Conflict',
    410: 'Gone',
    413: 'RequestEntityTooLarge',
    415: 'UnsupportedMediaType',
    422: 'Invalid',
    429: 'TooManyRequests',
    500: 'InternalError',
    503: 'ServiceUnavailable',
    504: 'Timeout',
  })[status] ?? 'Unknown'

const reasonIs =
  (...reasons: string[]) =>
  (error: unknown): error is ApiError =>
    error instanceof ApiError && reasons.includes(error.reason)

export const isNotFound = reasonIs('NotFound')
/** The object changed since it was read; AlreadyExists, which is also a 409, is not meant. */
export const isConflict = reasonIs('Conflict')
export const isAlreadyExists = reasonIs('AlreadyExists')
export const isForbidden = reasonIs('Forbidden')
export const isUnauthorized = reasonIs('Unauthorized')
export const isInvalid = reasonIs('Invalid')
/** A resourceVersion or continue token is too old: list again. */
export const isExpired = reasonIs('Expired', 'Gone')
export const isTooManyRequests = reasonIs('TooManyRequests')
