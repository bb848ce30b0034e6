/** Runs the test files, all or those whose path contains a word, and ends with the runner's summary. */
import { globSync } from 'node:fs'
import { resolve } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'

const [only = ''] = process.argv.slice(2)
const files = globSync('{src,testkit,tools,bench}/**/*.test.ts').filter((file) => file.includes(only))
if (files.length === 0) {
  console.error(`no test file's path contains "${only}"`)
  process.exit(1)
}
// Those with whole programs take minutes, which they mostly wait: begun last, they would keep the others' cores idle.
const isLong = (file: string): boolean => /e2e|demo|\.fault\.|^src\/(main|operator|cli)\//.test(file)
const ordered = files.toSorted((a, b) => Number(isLong(b)) - Number(isLong(a)) || (a < b ? -1 : 1))

process.env['NODE_COMPILE_CACHE'] ??= resolve('node_modules/.cache/compile')
// Much of a test is waiting, so four at a time fill two cores; one that hangs is a failure after five minutes.
const paths = ordered.map((file) => resolve(file))
const tests = run({ files: paths, concurrency: 4, execArgv: ['--test-timeout=300000'] })
tests.on('test:fail', () => (process.exitCode = 1))
tests.compose(spec).pipe(process.stdout)
