/** `clusters[].cluster`, with the names of the file. */
export interface KubeconfigCluster {
  server?: string
  'tls-server-name'?: string
  'insecure-skip-tls-verify'?: boolean
  'certificate-authority'?: string
  'certificate-authority-data'?: string
  'proxy-url'?: string
  'disable-compression'?: boolean
  extensions?: KubeconfigExtension[]
}

/** Where other programs keep what is theirs; `client.authentication.k8s.io/exec` is handed to exec plug-ins. */
export interface KubeconfigExtension {
  name?: string
  extension?: JsonValue
}

/** Whatever JSON can say, except null. */
export type JsonValue = {}

/** `users[].user`. */
export interface KubeconfigUser {
  'client-certificate'?: string
  'client-certificate-data'?: string
  'client-key'?: string
  'client-key-data'?: string
  token?: string
  tokenFile?: string
  as?: string
  'as-uid'?: string
  'as-groups'?: string[]
  'as-user-extra'?: Record<string, string[]>
  username?: string
  password?: string
  'auth-provider'?: { name?: string }
  exec?: ExecConfig
}

/** `users[].user.exec`: the command that prints a credential. */
export interface ExecConfig {
  command?: string
  args?: string[]
  env?: { name?: string; value?: string }[]
  apiVersion?: string
  installHint?: string
  provideClusterInfo?: boolean
  interactiveMode?: string
}

/** `contexts[].context`. */
export interface KubeconfigContext {
  cluster?: string
  user?: string
  namespace?: string
}

/** The whole document as it is written in a file. */
export interface KubeconfigDocument {
  apiVersion?: string
  kind?: string
  'current-context'?: string
  clusters?: { name?: string; cluster?: KubeconfigCluster }[]
  users?: { name?: string; user?: KubeconfigUser }[]
  contexts?: { name?: string; context?: KubeconfigContext }[]
}

/** A value has the wrong type. `field` is its path; the value itself is not kept, as it may be a secret. */
export class FieldError extends Error {
  readonly field: string

  constructor(field: string, problem: string) {
    super(`${field || 'the document'} ${problem}`)
    this.field = field
  }
}

// As in kubectl, null and the empty value both mean "not set".
type Read<T> = (value: unknown, at: string) => T | undefined

const wrong = (at: string, expected: string, value: unknown, hint = ''): FieldError =>
  new FieldError(at, `must be ${expected}, but is ${kindOf(value)}${hint}`)

const kindOf = (value: unknown): string => {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a mapping'
  return typeof value === 'string' ? 'text' : typeof value === 'boolean' ? 'true or false' : `a ${typeof value}`
}

const text: Read<string> = (value, at) => {
  if (value === null || value === undefined || value === '') return undefined
  if (typeof value !== 'string') {
    throw wrong(at, 'text', value, typeof value === 'object' ? '' : ': put it in quotes')
  }
  return value
}

const flag: Read<boolean> = (value, at) => {
  if (value === null || value === undefined) return undefined
  if (typeof value !== 'boolean') throw wrong(at, 'true or false', value)
  return value
}

const anything: Read<JsonValue> = (value, at) => {
  try {
    JSON.stringify(value)
    return value ?? undefined
  } catch {
    throw new FieldError(at, 'refers to itself') // a YAML alias inside its own anchor
  }
}

const mappingOf = (value: unknown, at: string): Map<string, unknown> | undefined => {
  if (value === null || value === undefined) return undefined
  if (typeof value !== 'object' || Array.isArray(value)) throw wrong(at, 'a mapping', value)
  return new Map(Object.entries(value))
}

const list =
  <T>(item: Read<T>): Read<T[]> =>
  (value, at) => {
    if (value === null || value === undefined) return undefined
    if (!Array.isArray(value)) throw wrong(at, 'a list', value)
    const items: unknown[] = value
    return items.map((entry, index) => {
      const read = item(entry, `${at}[${index}]`)
      if (read === undefined) throw new FieldError(`${at}[${index}]`, 'is empty')
      return read
    })
  }

const dictionary =
  <T>(item: Read<T>): Read<Record<string, T>> =>
  (value, at) => {
    const mapping = mappingOf(value, at)
    if (!mapping) return undefined
    const read = [...mapping].map(([key, entry]) => [key, item(entry, `${at}.${key}`)] as const)
    return Object.fromEntries(read.filter((pair): pair is readonly [string, T & {}] => pair[1] !== undefined))
  }

const shape =
  <T extends object>(fields: { [K in keyof T]-?: Read<T[K] & {}> }): Read<Partial<T>> =>
  (value, at) => {
    const mapping = mappingOf(value, at)
    if (!mapping) return undefined
    const read: Partial<T> = {}
    for (const field in fields) {
      const found = fields[field](mapping.get(field), at ? `${at}.${field}` : field)
      if (found !== undefined) read[field] = found
    }
    return read
  }

const exec = shape<ExecConfig>({
  command: text,
  args: list((value, at) => (value === '' ? '' : text(value, at))),
  env: list(shape<{ name?: string; value?: string }>({ name: text, value: text })),
  apiVersion: text,
  installHint: text,
  provideClusterInfo: flag,
  interactiveMode: text,
})

const cluster = shape<KubeconfigCluster>({
  server: text,
  'tls-server-name': text,
  'insecure-skip-tls-verify': flag,
  'certificate-authority': text,
  'certificate-authority-data': text,
  'proxy-url': text,
  'disable-compression': flag,
  extensions: list(shape<KubeconfigExtension>({ name: text, extension: anything })),
})

const user = shape<KubeconfigUser>({
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
  token: text,
  tokenFile: text,
  as: text,
  'as-uid': text,
  'as-groups': list(text),
  'as-user-extra': dictionary(list(text)),
  username: text,
  password: text,
  'auth-provider': shape<{ name?: string }>({ name: text }),
  exec,
})

const context = shape<KubeconfigContext>({ cluster: text, user: text, namespace: text })

const documentShape = shape<KubeconfigDocument>({
  apiVersion: text,
  kind: text,
  'current-context': text,
  clusters: list(shape<{ name?: string; cluster?: KubeconfigCluster }>({ name: text, cluster })),
  users: list(shape<{ name?: string; user?: KubeconfigUser }>({ name: text, user })),
  contexts: list(shape<{ name?: string; context?: KubeconfigContext }>({ name: text, context })),
})

/** The document with every field of the right type; unknown fields are left out. Throws `FieldError`. */
export const readDocument = (value: unknown): KubeconfigDocument => documentShape(value, '') ?? {}
