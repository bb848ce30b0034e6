/**
 * Patterns of ARNs: regular expressions that match the whole text, in time that grows with its length and nothing else. Clusters
 * write the ARNs and people the patterns, and with a backtracking matcher the two together can stop a hub (`(a+)+`). What needs
 * backtracking (backreferences, lookaround) is refused, as Go's own expressions refuse it.
 */
export interface Pattern {
  readonly source: string
  matches(text: string): boolean
}

type Accepts = (char: string) => boolean

/** A state of the automaton: it takes a character, or goes on by itself. The last one does neither. */
interface State {
  takes?: Accepts
  next: number[]
}

type Node =
  | { kind: 'char'; takes: Accepts }
  | { kind: 'all'; of: Node[] }
  | { kind: 'any'; of: Node[] }
  | { kind: 'repeat'; of: Node; least: number; most: number }

/** More than any pattern of ARNs needs; `(a{99}){99}` does not get through. */
const mostStates = 4000
const longestText = 2048

/** Reads a pattern; `*` alone means every ARN. Throws an error that says what is wrong with it, and where. */
export const parsePattern = (source: string): Pattern => {
  const states = compile(new Parser(source === '*' ? '.*' : source).parse(), source)
  return { source, matches: (text) => text.length <= longestText && run(states, text) }
}

const run = (states: readonly State[], text: string): boolean => {
  let current = reach(states, [0])
  for (const char of text) {
    const next = [...current].flatMap((at) => (states[at]!.takes?.(char) ? states[at]!.next : []))
    current = reach(states, next)
    if (current.size === 0) return false
  }
  return current.has(states.length - 1)
}

/** All states that can be come to without a character. */
const reach = (states: readonly State[], from: readonly number[]): Set<number> => {
  const seen = new Set<number>()
  const open = [...from]
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (seen.has(at)) continue
    seen.add(at)
    const { takes, next } = states[at]!
    if (!takes) open.push(...next)
  }
  return seen
}

const compile = (root: Node, source: string): State[] => {
  const states: State[] = []
  const add = (state: State): number => {
    if (states.length >= mostStates) throw wrong(source, 'it is too large', 'use fewer or smaller repetitions')
    return states.push(state) - 1
  }
  /** Appends the states of a node, and answers those that lead on from it. */
  const build = (node: Node): { first: number; lasts: State[] } => {
    if (node.kind === 'char') {
      const state: State = { takes: node.takes, next: [] }
      return { first: add(state), lasts: [state] }
    }
    if (node.kind === 'repeat') return repeat(node)
    const fork: State = { next: [] }
    const first = add(fork)
    if (node.kind === 'any') {
      const branches = node.of.map(build)
      fork.next = branches.map((branch) => branch.first)
      return { first, lasts: branches.flatMap((branch) => branch.lasts) }
    }
    let lasts = [fork]
    for (const part of node.of) lasts = follow(lasts, build(part))
    return { first, lasts }
  }
  const repeat = ({ of, least, most }: Extract<Node, { kind: 'repeat' }>): { first: number; lasts: State[] } => {
    const start: State = { next: [] }
    const first = add(start)
    let lasts = [start]
    for (let i = 0; i < least; i++) lasts = follow(lasts, build(of))
    if (most === Infinity) {
      const loop: State = { next: [] }
      const at = add(loop)
      for (const last of lasts) last.next.push(at)
      const body = build(of)
      loop.next.push(body.first)
      for (const last of body.lasts) last.next.push(at)
      return { first, lasts: [loop] }
    }
    const ends = [...lasts]
    for (let i = least; i < most; i++) {
      lasts = follow(lasts, build(of))
      ends.push(...lasts)
    }
    return { first, lasts: ends }
  }
  const follow = (lasts: State[], then: { first: number; lasts: State[] }): State[] => {
    for (const last of lasts) last.next.push(then.first)
    return then.lasts
  }
  const { lasts } = build(root)
  const end = add({ next: [] })
  for (const last of lasts) last.next.push(end)
  return states
}

const wrong = (source: string, what: string, next: string): RangeError =>
  new RangeError(`the pattern ${JSON.stringify(source.slice(0, 200))} cannot be used: ${what}; ${next}`)

const classes: Record<string, Accepts> = {
  d: (c) => c >= '0' && c <= '9',
  w: (c) => /[A-Za-z0-9_]/.test(c),
  s: (c) => /\s/.test(c),
}
const shown = 'write what is known of RE2: . [] () | * + ? {n,m} \\d \\w'

/** One that descends: alternatives, sequences, repetitions, single characters. */
class Parser {
  readonly #source: string
  readonly #text: string
  #at = 0

  constructor(source: string) {
    this.#source = source
    // The whole text is matched anyway.
    this.#text = source.replace(/^\^/, '').replace(/(?<!\\)\$$/, '')
  }

  parse(): Node {
    if (this.#text === '') throw this.#wrong('it is empty')
    const node = this.#alternatives(0)
    if (this.#at < this.#text.length) throw this.#wrong('a ) has no (')
    return node
  }

  #alternatives(depth: number): Node {
    if (depth > 50) throw this.#wrong('its groups are nested too deeply')
    const branches = [this.#sequence(depth)]
    while (this.#take('|')) branches.push(this.#sequence(depth))
    return branches.length === 1 ? branches[0]! : { kind: 'any', of: branches }
  }

  #sequence(depth: number): Node {
    const of: Node[] = []
    while (this.#at < this.#text.length && !'|)'.includes(this.#text[this.#at]!)) of.push(this.#repeated(depth))
    return { kind: 'all', of }
  }

  #repeated(depth: number): Node {
    let node = this.#single(depth)
    for (;;) {
      const range = this.#quantifier()
      if (!range) return node
      this.#take('?') // lazy or not, the whole text has to match
      node = { kind: 'repeat', of: node, least: range[0], most: range[1] }
    }
  }

  #quantifier(): [least: number, most: number] | undefined {
    if (this.#take('*')) return [0, Infinity]
    if (this.#take('+')) return [1, Infinity]
    if (this.#take('?')) return [0, 1]
    const counted = /^\{(\d{1,4})(,(\d{0,4}))?\}/.exec(this.#text.slice(this.#at))
    if (!counted) return undefined
    this.#at += counted[0].length
    const least = Number(counted[1])
    const most = counted[2] === undefined ? least : counted[3] ? Number(counted[3]) : Infinity
    if (most < least) throw this.#wrong(`${counted[0]} ends before it begins`)
    return [least, most]
  }

  #single(depth: number): Node {
    const char = this.#text[this.#at++]!
    if (char === '(') return this.#group(depth)
    if (char === '[') return { kind: 'char', takes: this.#set() }
    if (char === '.') return { kind: 'char', takes: () => true }
    if (char === '\\') return { kind: 'char', takes: this.#escaped() }
    if ('*+?'.includes(char)) throw this.#wrong(`there is nothing before ${char} to repeat`)
    if ('^$'.includes(char)) throw this.#wrong(`${char} stands in the middle: the whole ARN has to match anyway`)
    return { kind: 'char', takes: (c) => c === char }
  }

  #group(depth: number): Node {
    if (this.#take('?') && !this.#take(':')) throw this.#wrong('it looks around, names groups or sets flags')
    const inner = this.#alternatives(depth + 1)
    if (!this.#take(')')) throw this.#wrong('a ( has no )')
    return inner
  }

  #set(): Accepts {
    const negated = this.#take('^')
    const parts: Accepts[] = []
    while (parts.length === 0 || this.#text[this.#at] !== ']') {
      const char = this.#text[this.#at++]
      if (char === undefined) throw this.#wrong('a [ has no ]')
      const from = char === '\\' ? this.#escapedChar() : char
      if (typeof from !== 'string') parts.push(from)
      else parts.push(this.#range(from))
    }
    this.#at++
    return (c) => parts.some((part) => part(c)) !== negated
  }

  #range(from: string): Accepts {
    if (this.#text[this.#at] !== '-' || this.#text[this.#at + 1] === ']') return (c) => c === from
    this.#at++
    const char = this.#text[this.#at++]
    const to = char === '\\' ? this.#escapedChar() : char
    if (typeof to !== 'string' || to < from) throw this.#wrong('a range in [] ends before it begins')
    return (c) => c >= from && c <= to
  }

  #escaped(): Accepts {
    const what = this.#escapedChar()
    return typeof what === 'string' ? (c) => c === what : what
  }

  #escapedChar(): string | Accepts {
    const char = this.#text[this.#at++] ?? ''
    const known = classes[char.toLowerCase()]
    if (known) return char === char.toLowerCase() ? known : (c) => !known(c)
    if (/[A-Za-z0-9]/.test(char) || char === '') throw this.#wrong(`\\${char} means nothing here`)
    return char
  }

  #take(char: string): boolean {
    if (this.#text[this.#at] !== char) return false
    this.#at++
    return true
  }

  #wrong(what: string): RangeError {
    return wrong(this.#source, what, shown)
  }
}
