import { label, ManagedServiceAccount } from '../../api/index.ts'
import { decoded, type Secret } from '../../kube/index.ts'
import { tokenKey } from '../contract.ts'

/** What a token Secret holds. */
export interface HeldToken {
  token: string
  /** PEM. */
  ca: string | undefined
  /** When it ends, in milliseconds, as the token itself says; undefined where it says nothing. */
  expiresAt: number | undefined
  /** The UID of the ManagedServiceAccount that the Secret says it is of. */
  owner: string
}

/** Reads a token Secret. One that is of something else is never read for a token: whoever may write Secrets could put one there. */
export const readTokenSecret = (secret: Secret): HeldToken | { problem: string } => {
  const { name, namespace, labels, ownerReferences = [] } = secret.metadata
  const owner = ownerReferences.find((one) => one.kind === ManagedServiceAccount.kind && one.name === name)
  if (labels?.[label.isManagedServiceAccount] !== 'true' || !owner)
    return { problem: `Secret ${namespace}/${name} is not the token of a ManagedServiceAccount` }
  const { [tokenKey.token]: token = '', [tokenKey.ca]: ca } = decoded(secret) ?? {}
  // Visible ASCII: anything else could not be sent in a header.
  if (!/^[\x21-\x7e]+$/.test(token)) return { problem: `Secret ${namespace}/${name} holds no usable token` }
  return { token, ca, expiresAt: endOf(token), owner: owner.uid }
}

/** When a token ends. Anybody can read that of a JWT; whether it is true is for the API server to say. */
const endOf = (token: string): number | undefined => {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8')) as {
      exp?: unknown
    }
    return typeof exp === 'number' && Number.isFinite(exp) ? exp * 1000 : undefined
  } catch {
    return undefined // not a JWT: it may be good all the same
  }
}
