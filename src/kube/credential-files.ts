import { readFile, stat } from 'node:fs/promises'
import type { Credential, CredentialSource } from './connection.ts'
import { pairProblem, certificateProblem } from './key-pair.ts'
import { KubeconfigError, codeOf } from './kubeconfig-error.ts'

/** A value that is written down, or the file that holds it. */
export type Material = { text: string; field: string } | { file: string }

/** What a credential is made of. */
export interface CredentialParts {
  ca?: Material | undefined
  /** Certificate and key change together: they are only ever used as a pair that fits. */
  pair?: { cert: Material; key: Material } | undefined
  token?: Material | undefined
  /** The token to use while the token's file cannot be read for the first time. */
  spareToken?: string | undefined
  basic?: Credential['basic']
}

export interface CredentialFileOptions {
  /** For messages. */
  source: string
  now?: (() => number) | undefined
  /** Told when a file can no longer be used and what was read from it before stays in use. */
  onWarning?: ((warning: KubeconfigError) => void) | undefined
}

// A projected token is replaced by swapping a symlink; stat sees another inode. Some network file systems do not show
// changes in stat at once, so everything is read again every minute whatever stat says.
const statEveryMs = 10_000
const readEveryMs = 60_000

/** A credential whose files are read again when they change; what was good once stays in use until something better is there. */
export const credentialFromParts = (parts: CredentialParts, options: CredentialFileOptions): CredentialSource => {
  const now = options.now ?? Date.now
  const ca = parts.ca && followed([parts.ca], ([pem = '']) => checked({ ca: pem }, certificateProblem(pem)), options)
  const pair =
    parts.pair &&
    followed(
      [parts.pair.cert, parts.pair.key],
      ([cert = '', key = '']) => checked({ cert, key }, pairProblem(cert, key)),
      options,
    )
  const spare = parts.spareToken
  const token =
    parts.token &&
    followed([parts.token], ([text = '']) => tokenIn(text), options, spare === undefined ? undefined : { token: spare })

  let current: Credential | undefined
  let checkedAt = Number.NEGATIVE_INFINITY
  let check: Promise<Credential> | undefined

  const refresh = async (force: boolean): Promise<Credential> => {
    const found = await Promise.all([ca?.({ force }), pair?.({ force }), token?.({ force })])
    checkedAt = now()
    const next = { ...found[0], ...found[1], ...found[2], ...(parts.basic ? { basic: parts.basic } : {}) }
    return (current = current && same(current, next) ? current : next)
  }

  return async ({ rejected, signal } = {}) => {
    signal?.throwIfAborted()
    const isRejected = (): boolean => rejected !== undefined && rejected === current
    if (isRejected()) await check?.catch(() => undefined) // it may have begun before the server said no
    if (!isRejected() && current && now() - checkedAt < statEveryMs) return current
    return (check ??= refresh(isRejected()).finally(() => (check = undefined)))
  }
}

type Checked<T> = { value: T } | { problem: string }

const checked = <T>(value: T, problem: string | undefined): Checked<T> =>
  problem === undefined ? { value } : { problem }

/** Reads a group of files that belong together; again when one of them changed, or by force. */
const followed = <T extends Credential>(
  materials: readonly Material[],
  checkTexts: (texts: string[]) => Checked<T>,
  { source, now = Date.now, onWarning }: CredentialFileOptions,
  spare?: T,
): ((options: { force: boolean }) => Promise<T>) => {
  const names = materials.map((material) => ('file' in material ? material.file : material.field)).join(' and ')
  let good: T | undefined
  let seen: string | undefined
  let settled = false
  let readAt = Number.NEGATIVE_INFINITY

  const read = async (): Promise<Checked<T>> =>
    checkTexts(await Promise.all(materials.map(async (one) => ('file' in one ? readFile(one.file, 'utf8') : one.text))))

  return async ({ force }) => {
    let problem: string
    let cause: unknown
    try {
      const stamp = await stampOf(materials)
      if (good && !force && settled && stamp === seen && now() - readAt < readEveryMs) return good
      let found = await read()
      if ('problem' in found) found = await read() // certificate and key may have been swapped between two reads
      if ('value' in found) {
        // Two writes within one tick of the file system's clock (4 ms) look alike. So a stamp is only trusted once the file was
        // read with it twice, seconds apart.
        settled = stamp === seen && now() - readAt >= statEveryMs
        ;[good, seen, readAt] = [found.value, stamp, now()]
        return good
      }
      problem = found.problem
    } catch (error) {
      cause = error
      problem = `it cannot be read (${codeOf(error) ?? 'unknown reason'})`
    }
    const next = 'write a good one in its place: it is read again within seconds'
    const failure = new KubeconfigError({ source, problem: `${names}: ${problem}`, next, cause })
    const last = good ?? spare
    if (!last) throw failure
    onWarning?.(failure)
    return last
  }
}

const stampOf = async (materials: readonly Material[]): Promise<string> => {
  const stats = materials.map(async (material) => {
    if (!('file' in material)) return ''
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(material.file, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(':')
  })
  return (await Promise.all(stats)).join(' ')
}

const tokenIn = (text: string): Checked<{ token: string }> => checked({ token: text.trim() }, tokenProblem(text.trim()))

/** Why a text cannot be sent as a token; undefined when it can. */
export const tokenProblem = (token: string): string | undefined => {
  if (token === '') return 'there is no token in it'
  return /^[\u0021-\u007e]+$/.test(token) ? undefined : 'the token has characters that cannot be sent in a header'
}

const same = (a: Credential, b: Credential): boolean =>
  a.ca === b.ca && a.cert === b.cert && a.key === b.key && a.token === b.token
