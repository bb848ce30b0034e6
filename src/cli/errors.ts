import { UsageError } from '../main/flags.ts'

/** What a shell learns from the exit code. */
export const exitCode = { done: 0, failed: 1, usage: 2, timedOut: 3, interrupted: 130 } as const

/** A command cannot go on: one line that says why, and what the person can do about it. */
export class CliError extends Error {
  override name = 'CliError'
  readonly next: string | undefined
  readonly code: number

  constructor(message: string, options: { next?: string | undefined; code?: number; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.next = options.next
    this.code = options.code ?? exitCode.failed
  }
}

/** It did not happen in time. It may still happen: nothing was undone. */
export class TimedOut extends CliError {
  override name = 'TimedOut'

  constructor(what: string, seconds: number, last: string, next?: string) {
    const seen = last ? `: ${last}` : ''
    super(`gave up after ${seconds} s ${what}${seen}`, {
      next:
        next ?? 'it goes on in the cluster; run the same command again to wait on, or give it longer with --timeout',
      code: exitCode.timedOut,
    })
  }
}

/** The person pressed Ctrl-C, or the shell ended us. */
export class Interrupted extends CliError {
  override name = 'Interrupted'

  constructor() {
    super('interrupted', {
      next: 'what was done stays; run the same command again to finish it',
      code: exitCode.interrupted,
    })
  }
}

/** The lines for stderr, and the exit code. More detail with `-v`. */
export const explain = (
  error: unknown,
  { level = 0, interrupted = false }: { level?: number; interrupted?: boolean } = {},
): { text: string; code: number } => {
  const shown = interrupted && !(error instanceof CliError) ? new Interrupted() : error
  const code = codeOf(shown)
  const message = shown instanceof Error ? shown.message : String(shown)
  const next = shown instanceof CliError && shown.next ? shown.next.split('\n').map((line) => `  ${line}\n`) : []
  const causes = level > 0 ? causesOf(shown) : []
  return { text: `Error: ${oneLine(message)}\n${next.join('')}${causes.join('')}`, code }
}

const codeOf = (error: unknown): number => {
  if (error instanceof CliError) return error.code
  return error instanceof UsageError ? exitCode.usage : exitCode.failed
}

const oneLine = (text: string): string => text.replaceAll(/\s*\n\s*/g, ' ').trim()

const causesOf = (error: unknown): string[] => {
  const lines: string[] = []
  for (let at = (error as { cause?: unknown }).cause, depth = 0; at && depth < 5; depth++) {
    lines.push(`  because: ${oneLine(at instanceof Error ? at.message : 'an error without a message')}\n`)
    at = (at as { cause?: unknown }).cause
  }
  return lines
}
