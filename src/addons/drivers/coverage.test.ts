import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { promisify } from 'node:util'

const root = new URL('../../../', import.meta.url).pathname
const folder = 'src/addons/drivers/token'

test('R2.44 the unit tests of the token driver cover more than 80 % of its lines, branches and functions', async () => {
  const files = readdirSync(`${root}${folder}`)
  const isTest = (file: string): boolean => file.endsWith('.test.ts')
  const least = ['lines', 'branches', 'functions'].map((what) => `--test-coverage-${what}=80`)
  const which = [`--test-coverage-include=${folder}/*.ts`, '--test-coverage-exclude=**/*.test.ts']
  const flags = ['--test', '--experimental-test-coverage', '--test-reporter=lcov', ...least, ...which]
  const tests = files.filter(isTest).map((file) => `${folder}/${file}`)
  // The runner tells its children by this variable that they are; this one is a runner of its own.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, ...tests], { cwd: root, env })
  const seen = [...stdout.matchAll(/^SF:(?:.*\/)?(.+)$/gm)].map(([, file]) => file)
  assert.deepEqual(new Set(seen), new Set(files.filter((file) => !isTest(file))), 'every file counts')
})
