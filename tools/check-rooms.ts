/** Keeps the rooms apart: who may import whom, and only through doors. Run by `make lint`. */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

const capabilities = ['registration', 'work', 'addons', 'permissions', 'serviceaccounts', 'identities', 'operator']
const base = ['kube', 'runtime', 'api', 'aws', 'events']

/** The rooms each room may import, besides itself. */
const allowed: Record<string, string[]> = {
  kube: [],
  runtime: ['kube'],
  api: ['kube'],
  aws: [],
  events: ['kube', 'runtime'],
  ...Object.fromEntries(capabilities.map((room) => [room, base])),
  main: [...base, ...capabilities],
  cli: [...base, ...capabilities, 'main'],
}

/** Each import of `file` that breaks a rule, as a sentence. */
export const violations = (file: string, source: string): string[] => {
  const from = roomOf(file)
  if (!from) return []
  const isTest = file.endsWith('.test.ts')
  return imports(source).flatMap((specifier) => {
    if (!specifier.startsWith('.')) return []
    const target = normalize(join(dirname(file), specifier))
    if (target.startsWith('..')) return [`imports ${specifier}, outside the project`]
    const to = roomOf(target)
    if (!to)
      return isTest
        ? []
        : [`imports ${target}: shipped code imports from src/ only; testkit, bench and tools are for tests`]
    if (to === from) return []
    const door = target === `src/${to}/index.ts`
    const contract = target === `src/${to}/contract.ts`
    if (contract && (capabilities.includes(from) || from === 'main' || from === 'cli')) return []
    // Tests may use the insides of the rooms below them, such as a certificate authority.
    if (isTest && base.includes(to)) return []
    if (!allowed[from]?.includes(to)) return [`${from}/ may not import ${to}/ (${specifier})`]
    // A room may have further doors: a folder with an index of its own. Each composition root is a door.
    if (!door && to !== 'main' && !target.endsWith('/index.ts'))
      return [`imports the insides of ${to}/ (${specifier}): use its index.ts`]
    return []
  })
}

const roomOf = (path: string): string | undefined => /^src\/([^/]+)\//.exec(path)?.[1]

const imports = (source: string): string[] =>
  [
    ...source.matchAll(
      /(?:^|\n)\s*(?:import|export)\b[^'"\n]*?from\s*['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)|(?:^|\n)\}\s*from\s*['"]([^'"]+)['"]/g,
    ),
  ].map((match) => match[1] ?? match[2] ?? match[3]!)

if (import.meta.main) {
  const files = globSync('src/**/*.ts')
  const problems = files.flatMap((file) => violations(file, readFileSync(file, 'utf8')).map((why) => `${file}: ${why}`))
  for (const problem of problems) console.error(problem)
  if (problems.length) process.exit(1)
  console.log(`rooms: ${files.length} files keep to their doors`)
}
