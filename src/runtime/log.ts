export type LogFields = Record<string, unknown>

/** Structured logs. Fields are data, never text with secrets in it; errors go in as `error`. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  /** A logger that adds these fields to each line. */
  with(fields: LogFields): Logger
}

const levels = { debug: 0, info: 1, warn: 2, error: 3 } as const
export type LogLevel = keyof typeof levels

/** One JSON object a line. */
export const jsonLogger = (
  write: (line: string) => void,
  options: { level?: LogLevel; now?: () => number; fields?: LogFields } = {},
): Logger => {
  const { level = 'info', now = Date.now, fields = {} } = options
  const at =
    (of: LogLevel) =>
    (message: string, more: LogFields = {}): void => {
      if (levels[of] < levels[level]) return
      const line = { time: new Date(now()).toISOString(), level: of, message, ...fields, ...more }
      write(`${JSON.stringify(line, plain)}\n`)
    }
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    with: (more) => jsonLogger(write, { level, now, fields: { ...fields, ...more } }),
  }
}

/** Says nothing. */
export const silentLogger: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  with: () => silentLogger,
}

// JSON.stringify would print an Error as {}. The causes say why; the stack stays out of the log.
const plain = (_key: string, value: unknown): unknown => (value instanceof Error ? describeError(value) : value)

/** An error in one line, with its causes. */
export const describeError = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  const own = error.name === 'Error' ? error.message : `${error.name}: ${error.message}`
  return error.cause === undefined ? own : `${own}: caused by ${describeError(error.cause)}`
}
