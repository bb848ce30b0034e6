import type { TestContext } from 'node:test'

/** Numbers that can be had again: `SEED=n make test` repeats what a failed run did. */
export interface Random {
  /** At least 0, below 1. */
  next(): number
  /** At least 0, below `n`. */
  below(n: number): number
  pick<T>(from: readonly T[]): T
}

/** Random numbers whose seed the test prints. */
export const seededRandom = (t: TestContext): Random => {
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  t.diagnostic(`SEED=${seed}`)
  return randomFrom(seed)
}

/** Mulberry32: small, fast, and good enough for choosing what to break. */
export const randomFrom = (seed: number): Random => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let z = state
    z = Math.imul(z ^ (z >>> 15), z | 1)
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61)
    return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (n: number): number => Math.floor(next() * n)
  return { next, below, pick: (from) => from[below(from.length)]! }
}

/** How often a fault test repeats itself: a few times in `make test`, in `make soak` as often as was promised; or `ROUNDS` times. */
export const rounds = (usual: number, soak = Math.max(usual, 9)): number => {
  const { ROUNDS: wanted = String(usual) } = process.env
  return wanted === 'soak' ? soak : Number(wanted)
}
