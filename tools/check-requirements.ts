/**
 * Keeps docs/requirements.md and the test titles that cite it in step: a `done` row is shown by a test that exists and
 * names it, and no title cites an id that the page does not have. Run by `make lint`.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const page = 'docs/requirements.md'
const states = ['open', 'done']
const columns = ['id', 'requirement', 'room', 'state', 'shown by']

/** One table row as it stands on the page, right or wrong. */
export type Row = { line: number; cells: string[] }
/** An id in a test title; `runs` is false for a skipped or planned test, which shows nothing. */
export type Citation = { id: string; line: number; runs: boolean }
export type Problem = { file: string; line: number; message: string }

const idOf = (row: Row): string => row.cells[0] ?? ''
const stateOf = (row: Row): string => row.cells[3] ?? ''
const testsOf = (row: Row): string[] =>
  (row.cells[4] ?? '')
    .split(',')
    .map((entry) => entry.trim().replaceAll('`', ''))
    .filter((entry) => entry !== '' && entry !== '–')

/** Every table row of the page. All its tables have the same columns, so only headers and rulers are left out. */
export const parsePage = (text: string): Row[] =>
  text
    .split('\n')
    .map((source, index) => ({ line: index + 1, source: source.trim() }))
    .filter(({ source }) => source.startsWith('|') && !/^[|\s:-]+$/.test(source))
    .map(({ line, source }) => ({ line, cells: cellsOf(source) }))
    .filter(({ cells }) => cells.join() !== columns.join())

const cellsOf = (source: string): string[] =>
  source
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim())

// Read by line, not by parsing: before the call a line may hold code and closed strings, but no comment and no open
// string, so that `// test('…')`, `pattern.test('…')` and a call quoted in a string are not taken for tests.
const before = /^(?!\s*\*)(?:(?!\/\/|\/\*)[^'"`\n]|'[^'\n]*'|"[^"\n]*")*?(?<![\w$.])/
const call = /(?:t\.)?(?:test|it|describe)(?:\.(?<modifier>\w+))?\(\s*/
const string = /(?<quote>['"`])(?<title>(?:\\.|(?!\k<quote>)[^\\])*)\k<quote>/
const titles = new RegExp(before.source + call.source + string.source, 'gm')

/** The ids that the test titles of one source file cite. */
export const findCitations = (source: string): Citation[] =>
  [...source.matchAll(titles)].flatMap((match) => {
    const { modifier, title = '' } = match.groups ?? {}
    const line = source.slice(0, match.index + match[0].length - title.length).split('\n').length
    const runs = modifier !== 'skip' && modifier !== 'todo'
    return [...title.matchAll(/\bR\d\.\d+\b/g)].map(([id]) => ({ id, line, runs }))
  })

/** The ids that a benchmark mentions: speed and memory are shown there, not by tests. */
export const findMentions = (source: string): Citation[] =>
  source
    .split('\n')
    .flatMap((text, index) => [...text.matchAll(/\bR\d\.\d+\b/g)].map(([id]) => ({ id, line: index + 1, runs: true })))

const rowProblems = (row: Row, first: Row, citations: Map<string, Citation[]>): string[] => {
  const id = idOf(row)
  if (row.cells.length !== columns.length || row.cells.includes(''))
    return [`${id || 'row'} needs ${columns.length} filled cells; write | ${columns.join(' | ')} |, with – for no test`]
  if (!/^R\d\.[1-9]\d*$/.test(id)) return [`'${id}' is no id; write R<specification>.<number>, such as R1.7`]
  if (first !== row) return [`${id} already stands on line ${first.line}; give this row the next free number`]
  if (!states.includes(stateOf(row))) return [`${id} has state '${stateOf(row)}'; write ${states.join(' or ')}`]
  if (stateOf(row) === 'open') return []
  if (testsOf(row).length === 0)
    return [`${id} is done but names no test; name one under 'shown by', or set it to open`]
  return testsOf(row).flatMap((test) => {
    const cited = citations.get(test)
    if (!cited)
      return [`${id} names ${test}, which is no test file or benchmark here; correct the path, or set the row to open`]
    if (cited.some((citation) => citation.id === id && citation.runs)) return []
    return [`${id} names ${test}, where no running test has ${id} in its title; cite it there, or remove the file here`]
  })
}

/** Everything wrong between the page and the citations of each test file, first of the page, then of the files. */
export const listProblems = (rows: Row[], citations: Map<string, Citation[]>): Problem[] => {
  if (rows.length === 0) return [{ file: page, line: 1, message: 'holds no requirement; restore its tables' }]
  const firsts = new Map<string, Row>()
  for (const row of rows) if (!firsts.has(idOf(row))) firsts.set(idOf(row), row)

  const onPage = rows.flatMap((row) =>
    rowProblems(row, firsts.get(idOf(row)) ?? row, citations).map((message) => ({
      file: page,
      line: row.line,
      message,
    })),
  )
  const inTests = [...citations].flatMap(([file, cited]) =>
    cited
      .filter(({ id }) => !firsts.has(id))
      .map(({ id, line }) => ({
        file,
        line,
        message: `cites ${id}, which ${page} does not have; correct the id or add it`,
      })),
  )
  return [...onPage, ...inTests]
}

/** One line to print when all is well. */
export const summary = (rows: Row[]): string => {
  const done = rows.filter((row) => stateOf(row) === 'done').length
  return `requirements: ${rows.length} lines, ${done} done, ${rows.length - done} open`
}

/** Reads a checkout: the rows of its page and the citations of each of its test files and benchmarks, by path from the root. */
export const readCheckout = (root: string): { rows: Row[]; citations: Map<string, Citation[]> } => {
  const read = (file: string): string => readFileSync(join(root, file), 'utf8')
  const tests = globSync('{src,testkit,bench,tools}/**/*.test.ts', { cwd: root }).sort()
  const benches = globSync('bench/*.ts', { cwd: root, exclude: ['bench/*.test.ts'] }).sort()
  return {
    rows: parsePage(read(page)),
    citations: new Map([
      ...tests.map((file) => [file, findCitations(read(file))] as const),
      ...benches.map((file) => [file, findMentions(read(file))] as const),
    ]),
  }
}

if (import.meta.main) {
  const { rows, citations } = readCheckout(join(import.meta.dirname, '..'))
  const problems = listProblems(rows, citations)
  for (const { file, line, message } of problems) console.error(`${file}:${line}: ${message}`)
  if (problems.length === 0) console.log(summary(rows))
  process.exitCode = problems.length === 0 ? 0 : 1
}
