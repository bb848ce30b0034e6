import { ApiError, type FailedRequest, type StatusBody } from '../kube/index.ts'

/** The codes of gRPC that we send or understand. */
export const code = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const
export type Code = (typeof code)[keyof typeof code]

const nameOf = (of: number): string => Object.entries(code).find(([, value]) => value === of)?.[0] ?? `code ${of}`

/** A call that ended with another status than OK. */
export class GrpcError extends Error {
  override name = 'GrpcError'
  readonly code: number
  /** What the API server said about it, where that was the reason. */
  readonly status: StatusBody | undefined

  constructor(of: number, message: string, { status, cause }: { status?: StatusBody; cause?: unknown } = {}) {
    super(message, { cause })
    this.code = of
    this.status = status
  }
}

/** Longer messages do not fit into what clients take as a header. */
const longestMessage = 4096

/**
 * The status as agents in the field read it: what the API server said travels as the JSON of Go's StatusError, whatever the
 * code, and they turn it into that error again.
 */
export const trailersOf = (error: GrpcError): { 'grpc-status': string; 'grpc-message': string } => {
  const { status } = error
  const message = status
    ? JSON.stringify({ ErrStatus: { metadata: {}, ...status, message: status.message?.slice(0, longestMessage / 2) } })
    : error.message.slice(0, longestMessage)
  return { 'grpc-status': String(error.code), 'grpc-message': percentEncode(message) }
}

/** The error that trailers tell of; undefined when all went well. */
export const errorIn = (trailers: Record<string, unknown>, what: string): GrpcError | undefined => {
  const said = trailers['grpc-status']
  if (said === '0') return undefined
  const text = percentDecode(typeof trailers['grpc-message'] === 'string' ? trailers['grpc-message'] : '')
  const status = statusIn(text)
  const of = said === undefined ? code.unknown : Number(said)
  const why = status?.message ?? (text || 'no reason was given')
  return new GrpcError(of, `${what}: ${nameOf(of)}: ${why}`, status ? { status } : {})
}

const statusIn = (text: string): StatusBody | undefined => {
  if (!text.startsWith('{')) return undefined
  try {
    const { ErrStatus } = JSON.parse(text) as { ErrStatus?: StatusBody }
    return ErrStatus
  } catch {
    return undefined // somebody's message begins like this
  }
}

/** What the API server said, as the error that a client of its own would have thrown; undefined when it was not its word. */
export const asApiError = ({ status }: GrpcError, request: FailedRequest): ApiError | undefined =>
  status ? new ApiError(request, status.code ?? 500, status) : undefined

/** gRPC writes everything but printable ASCII, and the percent sign, as %XX of its UTF-8. */
export const percentEncode = (text: string): string => {
  let encoded = ''
  for (const byte of Buffer.from(text))
    encoded += byte >= 0x20 && byte <= 0x7e && byte !== 0x25 ? String.fromCharCode(byte) : hex(byte)
  return encoded
}

const hex = (byte: number): string => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`

/** The inverse; what is not well-formed stays as it is. */
export const percentDecode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
