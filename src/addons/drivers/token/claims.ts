/** What a service account token says of itself. Whether it is genuine is for the hub to say. */
export interface TokenClaims {
  readonly namespace: string
  readonly account: string
  readonly uid: string
  readonly issuedAt: number
  readonly expiresAt: number
}

interface Payload {
  iat?: unknown
  exp?: unknown
  'kubernetes.io'?: { namespace?: unknown; serviceaccount?: { name?: unknown; uid?: unknown } }
}

/** Reads a token that the TokenRequest API issued; undefined when it is anything else. It goes into no message. */
export const readToken = (token: string | undefined): TokenClaims | undefined => {
  const parts = token?.split('.') ?? []
  if (parts.length !== 3 || parts.some((part) => !/^[\w-]+$/.test(part))) return undefined
  const { iat, exp, 'kubernetes.io': about } = payloadIn(parts[1]!)
  const { namespace, serviceaccount } = about ?? {}
  const { name: account, uid } = serviceaccount ?? {}
  if (typeof namespace !== 'string' || typeof account !== 'string' || typeof uid !== 'string') return undefined
  if (typeof iat !== 'number' || typeof exp !== 'number' || !(exp > iat)) return undefined
  return { namespace, account, uid, issuedAt: iat * 1000, expiresAt: exp * 1000 }
}

const payloadIn = (part: string): Payload => {
  try {
    const payload: unknown = JSON.parse(Buffer.from(part, 'base64url').toString())
    return typeof payload === 'object' && payload !== null ? payload : {}
  } catch {
    return {}
  }
}
