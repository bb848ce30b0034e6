import type { Sink } from './command.ts'

/** Rows under headings, for people; programs read the data itself with -o json or yaml. */
export interface Table {
  columns: readonly string[]
  rows: readonly (readonly string[])[]
  /** Said when there are no rows. */
  none: string
}

/** What a command prints on stdout. */
export interface Output {
  /** Whether colours are wanted. */
  readonly colour: boolean
  line(text?: string): void
  /** The data in the form that `-o` asks for; as a table it is what `table` makes of it. */
  data(form: string, value: unknown, table: () => Table | string): Promise<void>
}

/** Colour only on a terminal, and not where https://no-color.org says no. */
export const wantsColour = (sink: Sink, env: NodeJS.ProcessEnv): boolean =>
  Boolean(sink.isTTY) && !env['NO_COLOR'] && env['TERM'] !== 'dumb'

export const outputTo = (sink: Sink, env: NodeJS.ProcessEnv): Output => {
  const colour = wantsColour(sink, env)
  return {
    colour,
    line: (text = '') => void sink.write(`${text}\n`),
    data: async (form, value, table) => {
      if (form === 'json') sink.write(`${JSON.stringify(value, undefined, 2)}\n`)
      else if (form === 'yaml') sink.write(await yamlOf(value))
      else {
        const shown = table()
        sink.write(typeof shown === 'string' ? withNewline(shown) : tableText(shown, { colour }))
      }
    },
  }
}

const yamlOf = async (value: unknown): Promise<string> => {
  const { stringify } = await import('yaml')
  return stringify(value, { aliasDuplicateObjects: false, lineWidth: 0, compat: 'yaml-1.1' })
}

const withNewline = (text: string): string => (text.endsWith('\n') ? text : `${text}\n`)

/** Columns as wide as they must be; the last one is not padded. */
export const tableText = ({ columns, rows, none }: Table, { colour = false } = {}): string => {
  if (rows.length === 0) return `${none}\n`
  const widths = columns.map((column, at) => Math.max(column.length, ...rows.map((row) => (row[at] ?? '').length)))
  const text = (row: readonly string[]): string =>
    widths.map((width, at) => (at === widths.length - 1 ? (row[at] ?? '') : (row[at] ?? '').padEnd(width))).join('   ')
  const head = text(columns.map((column) => column.toUpperCase()))
  const lines = [colour ? `\u001b[1m${head}\u001b[0m` : head, ...rows.map(text)]
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`
}
