import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { eventually } from './eventually.ts'
import type { LanyardProcess } from './lanyard.ts'
import type { Random } from './random.ts'

const patience = { timeoutMs: 120_000 }

/** Waits until a process does what it is for: a hub leads, which it has to write down; an agent is ready, and may have nothing to write. */
export const isAtWork = async (one: LanyardProcess): Promise<void> => {
  await one.process.ready()
  if (!one.process.name.startsWith('hub')) return
  await eventually(async () => {
    assert.match(await one.metrics(), /rest_client_requests_total\{[^}]*method="(?:POST|PUT|PATCH|DELETE)"/)
  }, patience)
}

/** Kills processes at random moments of what is going on, and keeps count. */
export class Kills {
  readonly #random: Random
  readonly #counts: Record<string, number> = {}

  constructor(random: Random) {
    this.#random = random
  }

  async kill(during: string, { process }: LanyardProcess): Promise<void> {
    const key = `${process.name.replace(/-.*/, '')} during ${during}`
    this.#counts[key] = (this.#counts[key] ?? 0) + 1
    await process.kill()
  }

  /** Does it once for each: a while after it began, that one is killed. All were at work, and are again before it goes on. */
  async amid(during: string, victims: readonly LanyardProcess[], act: () => Promise<unknown>): Promise<void> {
    for (const victim of victims) {
      await Promise.all(victims.map(isAtWork))
      const acting = act()
      await pause(this.#random.below(1500))
      await this.kill(during, victim)
      victim.process.spawn()
      await acting
    }
  }

  summary(): string {
    const total = Object.values(this.#counts).reduce((sum, one) => sum + one, 0)
    return `${total} kills: ${JSON.stringify(this.#counts)}`
  }
}
