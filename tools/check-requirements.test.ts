import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { findCitations, listProblems, parsePage, readCheckout, summary } from './check-requirements.ts'

const header = '| id | requirement | room | state | shown by |\n|---|---|---|---|---|\n'
const pageOf = (...rows: string[]) => `# Requirements\n\n${header}${rows.join('\n')}\n`

// This file is itself read by the check, so the ids of its examples are put in from outside the quoted calls.
const [known, other, unknown] = ['R1.1', 'R1.2', 'R9.9']
const titled = (title: string, call = 'test') => `${call}('${title}', () => {})\n`

/** The problems of a page and some test sources, printed as the command prints them. */
const check = (page: string, sources: Record<string, string> = {}) =>
  listProblems(
    parsePage(page),
    new Map(Object.entries(sources).map(([file, source]) => [file, findCitations(source)])),
  ).map(({ file, line, message }) => `${file}:${line}: ${message}`)

const open = (id: string) => `| ${id} | a cluster joins | \`src/registration/hub\` | open | – |`
const done = (id: string, tests: string) => `| ${id} | a cluster joins | \`src/registration/hub\` | done | ${tests} |`

test('a page whose done rows are shown by their tests passes and is summed up', () => {
  const page = pageOf(done(known, '`src/a.test.ts`, src/b.test.ts'), open(other))
  const sources = { 'src/a.test.ts': titled(`${known} joins`), 'src/b.test.ts': titled(`${known}, ${other} joins`) }

  assert.deepEqual(check(page, sources), [])
  assert.equal(summary(parsePage(page)), 'requirements: 2 lines, 1 done, 1 open')
})

test('an id that stands twice is reported with the line of the first', () => {
  assert.deepEqual(check(pageOf(open(known), open(other), open(known))), [
    `docs/requirements.md:7: ${known} already stands on line 5; give this row the next free number`,
  ])
})

test('a badly formed id is reported', () => {
  for (const id of ['1.1', 'R1', 'R1.x', 'R1.01', 'r1.1', 'R1.1a'])
    assert.match(check(pageOf(open(id))).join('\n'), new RegExp(`^docs/requirements.md:5: '${id}' is no id; write R<`))
})

test('a row with too few cells, too many, or an empty one is reported', () => {
  for (const row of [
    `| ${known} | joins | src/a | open |`,
    `${open(known)} more |`,
    `| ${known} | | src/a | open | – |`,
  ])
    assert.match(check(pageOf(row)).join('\n'), /^docs\/requirements\.md:5: R1\.1 needs 5 filled cells; write \| id \|/)
})

test('a pipe that is escaped belongs to its cell', () => {
  assert.deepEqual(check(pageOf(`| ${known} | \`csr\\|token\` | src/a | open | – |`)), [])
})

test('an unknown state is reported with those there are', () => {
  assert.deepEqual(check(pageOf(open(known).replace('open', 'almost'))), [
    `docs/requirements.md:5: ${known} has state 'almost'; write open or done`,
  ])
})

test('a done row without a test is reported', () => {
  assert.match(check(pageOf(done(known, '–'))).join('\n'), /:5: R1\.1 is done but names no test; name one/)
})

test('a done row that names a test file which does not exist is reported', () => {
  assert.match(check(pageOf(done(known, 'src/gone.test.ts'))).join('\n'), /names src\/gone\.test\.ts, which is no test/)
})

test('a done row is not shown by a comment, a string, another id or a skipped test', () => {
  const sources = [
    `// ${titled(known)}`,
    `  * ${titled(known)}`,
    `f() // ${titled(known)}`,
    `const quoted = "${titled(known).trim()}"\n`,
    `pattern.test('${known}')\n`,
    titled(`${other} joins`),
    titled(`${known}0 joins`),
    titled(known, 'test.skip'),
    titled(known, 'describe.todo'),
  ]
  for (const source of sources)
    assert.match(
      check(pageOf(done(known, 'src/a.test.ts'), open(other)), { 'src/a.test.ts': source }).join('\n'),
      /^docs\/requirements\.md:5: R1\.1 names src\/a\.test\.ts, where no running test has R1\.1 in its title; cite it/,
      source,
    )
})

test('a title is found in test, it, describe and t.test, in any quotes, on the next line and after other code', () => {
  const sources = [
    ...['test', 'it', 'describe', 't.test', 'await t.test', 'test.only'].map((call) => titled(known, call)),
    `test("${known} joins", f)`,
    `test(\`\${driver}: ${known} joins\`, f)`,
    `test(\n  '${known} joins', f)`,
    `for (const name of ['a', "b"]) test('it\\'s ${known}', f)`,
    `/** why */\n${titled(known)}`,
  ]
  for (const source of sources)
    assert.deepEqual(
      findCitations(source).map(({ id }) => id),
      [known],
      source,
    )
})

test('a title that cites an id which the page does not have is reported where the title stands', () => {
  const source = `import x from 'x'\n\n${titled(known)}test(\n  '${unknown} flies', f)\n${titled(unknown, 'test.skip')}`
  assert.deepEqual(check(pageOf(open(known)), { 'bench/a.test.ts': source }), [
    `bench/a.test.ts:5: cites ${unknown}, which docs/requirements.md does not have; correct the id or add it`,
    `bench/a.test.ts:6: cites ${unknown}, which docs/requirements.md does not have; correct the id or add it`,
  ])
})

test('a page without any row is reported, not passed', () => {
  assert.deepEqual(check('# Requirements\n'), ['docs/requirements.md:1: holds no requirement; restore its tables'])
})

test('a checkout is read from its page and the tests of its four source folders, whichever of them exist', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'lanyard-requirements-'))
  t.after(() => rmSync(root, { recursive: true }))
  const write = (folder: string, file: string, text: string) => {
    mkdirSync(join(root, folder), { recursive: true })
    writeFileSync(join(root, folder, file), text)
  }
  write('docs', 'requirements.md', pageOf(done(known, 'src/kube/a.test.ts')))
  write('src/kube', 'a.test.ts', titled(known))
  write('testkit', 'b.test.ts', titled(unknown))
  write('examples', 'c.test.ts', titled(unknown))

  const { rows, citations } = readCheckout(root)

  assert.deepEqual([...citations.keys()], ['src/kube/a.test.ts', 'testkit/b.test.ts'])
  assert.deepEqual(
    listProblems(rows, citations).map(({ file }) => file),
    ['testkit/b.test.ts'],
  )
})
