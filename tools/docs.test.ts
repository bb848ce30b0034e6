/** The pages for people, checked against the program: what they name is there. */
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { conditionType, crds } from '../src/api/index.ts'
import { persistentFlags } from '../src/cli/command.ts'
import { findCommand } from '../src/cli/find.ts'
import { root } from '../src/cli/run.ts'
import { parseArguments } from '../src/main/flags.ts'

const pages = ['README.md', 'CONTRIBUTING.md', ...globSync('docs/**/*.md')].sort()
const textOf = (page: string): string => readFileSync(page, 'utf8')

/** As GitHub makes them of headings. */
const anchorsOf = (page: string): string[] =>
  [...textOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )

test('links between pages lead somewhere, to the heading too', () => {
  const broken = pages.flatMap((page) =>
    [...textOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target]) => target!)
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => {
        const [path, anchor] = target.split('#') as [string, string?]
        const file = path === '' ? page : join(dirname(page), path)
        return !existsSync(file) || (anchor !== undefined && !anchorsOf(file).includes(anchor))
      })
      .map((target) => `${page}: ${target}`),
  )
  assert.deepEqual(broken, [])
})

interface Schema {
  properties?: Record<string, Schema>
}

test('R4.29 the page of each kind names each field of its spec', () => {
  const missing = crds({ conversion: 'none' }).flatMap(({ spec: { names, versions } }) => {
    const page = `docs/spec/${names.singular}.md`
    if (!existsSync(page)) return [`${page} does not exist`]
    const text = textOf(page)
    const { openAPIV3Schema } = versions.find(({ storage }) => storage)!.schema as { openAPIV3Schema: Schema }
    return Object.keys(openAPIV3Schema.properties?.['spec']?.properties ?? {})
      .filter((field) => !new RegExp(`\\b${field}\\b`).test(text))
      .map((field) => `${page}: spec.${field}`)
  })
  assert.deepEqual(missing, [])
})

test('R2.47 R4.29 each condition that is written is explained on a page', () => {
  const text = pages
    .filter((page) => /^docs\/(spec|guides|drivers|troubleshooting)/.test(page))
    .map(textOf)
    .join('\n')
  const types = Object.values(conditionType).flatMap((ofKind): string[] => Object.values(ofKind))
  assert.deepEqual(
    [...new Set(types)].filter((type) => !new RegExp(`\\b${type}\\b`).test(text)),
    [],
  )
})

test('R3.49 R3.55 the page on AWS accounts tells of every secret that the room of credentials reads, and which way calls take', () => {
  const page = textOf('docs/guides/aws-accounts.md')
  const section = (heading: string): string => page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const kinds = [...textOf('src/aws/recipe.ts').matchAll(/kind: '(\w+)'/g)].map(([, kind]) => kind!)
  const words = {
    controller: /hub's own/,
    static: /access key in a Secret/,
    role: /sessions of roles/,
    serviceAccount: /token of a service account/,
  }
  assert.deepEqual([...new Set(kinds)].toSorted(), Object.keys(words).toSorted())
  for (const word of Object.values(words)) assert.match(section('Where secrets go'), word)
  assert.match(section('The network'), /sts\.<region>\.amazonaws\.com/)
})

test('R5.27 the guide to tokens shows the library, the Secrets themselves, and how one is copied to be mounted', () => {
  const page = textOf('docs/guides/tokens.md')
  assert.match(page, /^## The library$[^]*openTokens\(/m)
  assert.match(
    page,
    /^## The Secrets themselves$[^]*is-managed-serviceaccount=true[^]*kubectl get secret .*kubectl apply/m,
  )
})

/** The commands in the code blocks of a page: lines that begin with a program of ours. */
const commandsIn = (page: string): string[] =>
  [...textOf(page).matchAll(/^```(?:sh|console|shell|bash)?\n([\s\S]*?)^```|((?:^ {4}.+\n)+)/gm)]
    .map(([, fenced, indented]) => (fenced ?? indented!).replaceAll('\\\n', ' '))
    .flatMap((block) => block.split('\n'))
    .map((line) => line.trim().replace(/^\$ /, ''))
    .filter((line) => /^(clusteradm|lanyard|clusterctl) [a-z]/.test(line))

/** What our program gets of a line: before pipes, redirections and remarks. */
const wordsOf = (line: string): string[] =>
  line
    .split(/ [|>&#]|;/)[0]!
    .trim()
    .split(/\s+/)
    .slice(1)

for (const page of pages) {
  const commands = commandsIn(page)
  if (commands.length === 0) continue
  test(`R2.47 the ${commands.length} commands of ${page} are commands with flags that there are`, async () => {
    const wrong: string[] = []
    for (const line of commands) {
      try {
        const { branch, rest } = findCommand(root, wordsOf(line))
        const { command } = await branch.load!()
        // Programs that run for long read their own flags.
        if (!command.ownFlags) parseArguments(rest, { ...persistentFlags, ...command.flags })
      } catch (error) {
        wrong.push(`${line}: ${(error as Error).message}`)
      }
    }
    assert.deepEqual(wrong, [])
  })
}
