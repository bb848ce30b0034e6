import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto'

/** What the Secret holds, as far as it can be read. */
export interface Held {
  /** All that are trusted. One of them signs; the others are on their way in or out. */
  authorities: readonly X509Certificate[]
  authorityKey: KeyObject | undefined
  serving: X509Certificate | undefined
  servingKey: KeyObject | undefined
}

/** PEM, as a server and whoever calls it need it. */
export interface Serving {
  cert: string
  key: string
  /** Everything that a caller should trust: during a change of authority, more than one certificate. */
  caBundle: string
}

/** Reads what can be read of a Secret's data (base64); the rest is undefined, and for the checks to judge. */
export const decode = (data: Record<string, string> = {}): Held => {
  const text = (name: string): string => Buffer.from(data[name] ?? '', 'base64').toString('utf8')
  return {
    authorities: certificatesIn(text('ca.crt')),
    authorityKey: attempt(() => createPrivateKey(text('ca.key'))),
    serving: certificatesIn(text('tls.crt'))[0],
    servingKey: attempt(() => createPrivateKey(text('tls.key'))),
  }
}

/** The inverse of `decode`. */
export const encode = (held: Held): Record<string, string> => {
  const { cert, key, caBundle } = servingOf(held)
  const all = { 'ca.crt': caBundle, 'ca.key': pemOf(held.authorityKey), 'tls.crt': cert, 'tls.key': key }
  return Object.fromEntries(Object.entries(all).map(([name, text]) => [name, Buffer.from(text).toString('base64')]))
}

/** The part that is used; the authority's key stays behind. */
export const servingOf = (held: Held): Serving => ({
  cert: String(held.serving ?? ''),
  key: pemOf(held.servingKey),
  caBundle: held.authorities.join(''),
})

const pemOf = (key: KeyObject | undefined): string => key?.export({ type: 'pkcs8', format: 'pem' }).toString() ?? ''

const certificatesIn = (text: string): X509Certificate[] =>
  (text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [])
    .map((pem) => attempt(() => new X509Certificate(pem)))
    .filter((certificate) => certificate !== undefined)

const attempt = <T>(read: () => T): T | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}
