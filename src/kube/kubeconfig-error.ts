export interface KubeconfigProblem {
  /** Which file, Secret or context is at fault. */
  source: string
  /** What is wrong and why. Must never hold a secret. */
  problem: string
  /** What a person should do about it. */
  next: string
  cause?: unknown
}

/** A kubeconfig, or a credential that it leads to, cannot be used. The one error of this part: it says which, why and what to do next. */
export class KubeconfigError extends Error {
  override name = 'KubeconfigError'
  readonly source: string
  readonly next: string

  constructor({ source, problem, next, cause }: KubeconfigProblem) {
    super(`${source}: ${problem}; ${next}`, cause === undefined ? undefined : { cause })
    this.source = source
    this.next = next
  }
}

/** Text from elsewhere made safe to show: quoted, control characters escaped, cut to a length that fits a message. */
export const quoted = (text: string): string => {
  const shown = JSON.stringify(text.length > 100 ? `${text.slice(0, 99)}…` : text)
  // JSON leaves DEL and the C1 controls alone; a terminal obeys them
  return shown.replaceAll(
    /[\u007f-\u009f\u2028-\u202e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** A list of names for a message: `"a", "b" and 3 more`. */
export const listed = (names: readonly string[], most = 10): string => {
  const shown = names.slice(0, most).map(quoted).join(', ')
  return names.length > most ? `${shown} and ${names.length - most} more` : shown
}

/** The code of a system error, such as `ENOENT`. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
