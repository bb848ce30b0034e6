/**
 * The part of JSONPath that kubectl users write: `.a.b`, `['x.y']`, `.a\.b`, `[0]`, `[-1]`, `[*]`, `[?(@.type=="Ready")]`.
 * Braces around it and a `$` in front of it are allowed.
 */
type Step =
  | { kind: 'field'; name: string }
  | { kind: 'index'; index: number }
  | { kind: 'all' }
  | { kind: 'filter'; path: Step[]; operator: Operator | undefined; value: unknown }

const operators = ['==', '!=', '<=', '>=', '<', '>'] as const
type Operator = (typeof operators)[number]

/** Where a value was found, and the value. */
export interface Found {
  at: (string | number)[]
  value: unknown
}

/** A path that cannot be read; the message says where. */
export class JsonPathError extends Error {
  override name = 'JsonPathError'
}

/** Reads a path once, so that it can be used often. */
export const jsonPath = (text: string): ((root: unknown) => Found[]) => {
  const steps = parse(text)
  return (root) => walk(steps, [{ at: [], value: root }])
}

const parse = (text: string): Step[] => {
  let rest = text.trim()
  if (rest.startsWith('{') && rest.endsWith('}')) rest = rest.slice(1, -1).trim()
  if (rest.startsWith('$')) rest = rest.slice(1)
  if (!/^[.[]/.test(rest)) throw new JsonPathError(`JSON path "${text}" does not begin with "." or "["`)
  return stepsOf(rest, text)
}

const stepsOf = (from: string, whole: string): Step[] => {
  const steps: Step[] = []
  let rest = from
  while (rest !== '' && rest !== '.') {
    const [step, length] = nextStep(rest, whole)
    steps.push(step)
    rest = rest.slice(length)
  }
  return steps
}

const nextStep = (rest: string, whole: string): [Step, number] => {
  // Names end at a dot or bracket; a backslash takes the next character as it is.
  const name = /^\.((?:\\.|[^.[\]\\])+)/.exec(rest)
  if (name) {
    const field = name[1]!.replaceAll(/\\(.)/g, '$1')
    return [field === '*' ? { kind: 'all' } : { kind: 'field', name: field }, name[0].length]
  }
  const quoted = /^\.?\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]/.exec(rest)
  if (quoted) return [{ kind: 'field', name: (quoted[1] ?? quoted[2]!).replaceAll(/\\(.)/g, '$1') }, quoted[0].length]
  const index = /^\.?\[\s*(-?\d+)\s*\]/.exec(rest)
  if (index) return [{ kind: 'index', index: Number(index[1]) }, index[0].length]
  const all = /^\.?\[\s*\*\s*\]/.exec(rest)
  if (all) return [{ kind: 'all' }, all[0].length]
  if (/^\.?\[\s*\?\(/.test(rest)) return filterStep(rest, whole)
  const position = whole.length - rest.length
  throw new JsonPathError(
    `JSON path "${whole}" cannot be read from "${rest.slice(0, 20)}" (character ${position + 1}) on: use .name, ['name'], [0], [*] or [?(@.name=="value")]`,
  )
}

const filterStep = (rest: string, whole: string): [Step, number] => {
  const filter =
    /^\.?\[\s*\?\(\s*@((?:\.(?:\\.|[^.[\]\\\s=!<>)])+|\[[^\]]*\])*)\s*(?:(==|!=|<=|>=|<|>)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|true|false|null|-?\d+(?:\.\d+)?)\s*)?\)\s*\]/.exec(
      rest,
    )
  if (!filter)
    throw new JsonPathError(`JSON path "${whole}" has a filter that cannot be read: use [?(@.name=="value")]`)
  const [text, path, operator, value] = filter
  const step: Step = {
    kind: 'filter',
    path: stepsOf(path!, whole),
    operator: operator as Operator | undefined,
    value: value === undefined ? undefined : literal(value),
  }
  return [step, text.length]
}

const literal = (text: string): unknown =>
  /^["']/.test(text) ? text.slice(1, -1).replaceAll(/\\(.)/g, '$1') : (JSON.parse(text) as unknown)

const walk = (steps: readonly Step[], from: Found[]): Found[] =>
  steps.reduce((found, step) => found.flatMap((one) => follow(step, one)), from)

const follow = (step: Step, { at, value }: Found): Found[] => {
  if (typeof value !== 'object' || value === null) return []
  if (step.kind === 'field')
    return !Array.isArray(value) && Object.hasOwn(value, step.name)
      ? [{ at: [...at, step.name], value: (value as Record<string, unknown>)[step.name] }]
      : []
  const children: Found[] = Array.isArray(value)
    ? value.map((child: unknown, index) => ({ at: [...at, index], value: child }))
    : Object.entries(value).map(([key, child]) => ({ at: [...at, key], value: child }))
  if (step.kind === 'all') return children
  if (step.kind === 'index') {
    const child = Array.isArray(value) ? children.at(step.index) : undefined
    return child ? [child] : []
  }
  return children.filter((child) =>
    walk(step.path, [{ at: [], value: child.value }]).some((found) => compare(found.value, step)),
  )
}

const compare = (actual: unknown, { operator, value }: { operator: Operator | undefined; value: unknown }): boolean => {
  if (!operator) return true
  if (operator === '==') return actual === value
  if (operator === '!=') return actual !== value
  if (typeof actual !== typeof value || (typeof actual !== 'number' && typeof actual !== 'string')) return false
  const [a, b] = [actual, value as string | number]
  return operator === '<' ? a < b : operator === '>' ? a > b : operator === '<=' ? a <= b : a >= b
}
