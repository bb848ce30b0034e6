import type { Cli } from './command.ts'
import { CliError } from './errors.ts'

/** All that is piped in, as text. */
export const readAll = async ({ stdin }: Pick<Cli, 'stdin'>): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString('utf8')
}

/** Whether there is a person to ask. */
export const isInteractive = ({ stdin, stderr }: Pick<Cli, 'stdin' | 'stderr'>): boolean =>
  Boolean(stdin.isTTY) && Boolean(stderr.isTTY)

/** One line from the person. With `secret` it is not shown while it is typed. */
export const ask = async (
  { stdin, stderr, signal }: Pick<Cli, 'stdin' | 'stderr' | 'signal'>,
  question: string,
  { secret = false } = {},
): Promise<string> => {
  stderr.write(question)
  if (secret) stdin.setRawMode?.(true)
  try {
    let line = ''
    for await (const chunk of stdin) {
      signal.throwIfAborted()
      for (const char of Buffer.from(chunk).toString('utf8')) {
        if (char === '\r' || char === '\n') return line
        // In raw mode Ctrl-C and Ctrl-D are letters, and backspace is ours to do.
        if (char === '\u0003' || char === '\u0004') throw new CliError('nothing was entered', { code: 130 })
        line = char === '\u007f' || char === '\b' ? line.slice(0, -1) : line + char
      }
    }
    return line
  } finally {
    if (secret) {
      stdin.setRawMode?.(false)
      stderr.write('\n')
    }
  }
}
