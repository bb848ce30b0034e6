import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

/** The metrics that the sources register. */
const registered = (): string[] =>
  globSync('src/**/*.ts')
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/\.?\b(?:counter|gauge|histogram)\(\s*'([a-z0-9_]+)'/g)])
    .map((match) => match[1]!)

test('R0.22 docs/metrics.md lists each metric that there is, and none that there is not', () => {
  const page = readFileSync('docs/metrics.md', 'utf8')
  const prefixes = /^(lanyard|registration|controller_runtime|workqueue|rest_client|leader|process|nodejs)_/
  const listed = [...page.matchAll(/`([a-z0-9_]+)`/g)].map((match) => match[1]!).filter((name) => prefixes.test(name))
  assert.deepEqual([...new Set(listed)].sort(), [...new Set(registered())].sort())
})
