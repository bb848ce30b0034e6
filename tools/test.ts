/** Runs the test files, all or those whose path contains a word, and ends with the runner's summary. */
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { resolve } from 'node:path'

const [only = ''] = process.argv.slice(2)
const files = globSync('{src,testkit,tools,bench}/**/*.test.ts').filter((file) => file.includes(only))
if (files.length === 0) {
  console.error(`no test file's path contains "${only}"`)
  process.exit(1)
}
// Much of a test is waiting, so three at a time fill two cores; a hanging test is a failure, not a hanging CI.
const flags = ['--test', '--test-concurrency=3', '--test-timeout=300000', '--test-reporter=spec']
const env = { NODE_COMPILE_CACHE: resolve('node_modules/.cache/compile'), ...process.env }
const { status } = spawnSync(process.execPath, [...flags, ...files.sort()], { stdio: 'inherit', env })
process.exit(status ?? 1)
