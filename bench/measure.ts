/** Measured values; the name of each says its unit: `cpuMs`, `rssMB`, `perSecond`. */
export type Figures = Record<string, number>

/** What one case found, as it is printed. */
export interface Line {
  bench: string
  ok: boolean
  [more: string]: unknown
}

/** Runs one benchmark, and hands over a line for each of its cases. */
export type Bench = (print: (line: Line) => void) => Promise<void>

/** The same work by us and by the baseline, with one entry for each round. */
export interface Comparison {
  bench: string
  ours: readonly Figures[]
  baseline: readonly Figures[]
  /** What the baseline is, for the target. */
  versus: string
  /** The highest ratio of ours to the baseline that is good enough; figures without one are for information. */
  atMost: Record<string, number>
  /** Facts that are not measured, such as the number of objects. */
  about?: Record<string, unknown>
}

/** The middle of the values: one round that somebody else's work slowed down does not count. */
export const median = (values: readonly number[]): number => {
  if (values.length === 0) throw new Error('there is no median of nothing')
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** How long most took, and the slowest. */
export const percentiles = (values: readonly number[]): Figures => {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)]!
  return { p50Ms: at(0.5), p99Ms: at(0.99), maxMs: sorted.at(-1)! }
}

/** The median of each figure over the rounds. */
export const medians = (rounds: readonly Figures[]): Figures => {
  const names = Object.keys(rounds[0] ?? {})
  return Object.fromEntries(names.map((name) => [name, median(rounds.map((round) => round[name] ?? Number.NaN))]))
}

/** The line of a comparison. It is ok when no ratio is above its limit; one that is not a number never is. */
export const compare = ({ bench, ours, baseline, versus, atMost, about }: Comparison): Line => {
  const mine = medians(ours)
  const theirs = medians(baseline)
  const ratio = Object.fromEntries(Object.keys(mine).map((name) => [name, mine[name]! / (theirs[name] ?? Number.NaN)]))
  const limits = Object.entries(atMost)
  return {
    bench,
    ...about,
    rounds: ours.length,
    ...rounded(mine),
    baseline: rounded(theirs),
    ratio: rounded(ratio),
    target: `${limits.map(([name, most]) => `${name} at most ${round(most)}`).join(' and ')} of ${versus}`,
    ok: limits.every(([name, most]) => (ratio[name] ?? Number.NaN) <= most),
  }
}

/** Three digits that matter: more would only show the noise. */
export const rounded = (figures: Figures): Figures =>
  Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, round(value)]))

const round = (value: number): number => (Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3)))

/** Measures both sides, one after the other, in even rounds us first and in odd ones the baseline. */
export const inTurn = async <T>(
  round: number,
  ours: () => Promise<T>,
  baseline: () => Promise<T>,
): Promise<{ ours: T; baseline: T }> => {
  if (round % 2 === 0) return { ours: await ours(), baseline: await baseline() }
  const theirs = await baseline()
  return { ours: await ours(), baseline: theirs }
}

/** Says on stderr what is being done, and since when the benchmarks run. */
export const progress = (what: string): void => {
  process.stderr.write(`bench: ${(performance.now() / 1000).toFixed(0).padStart(3)} s  ${what}\n`)
}
