import type { Clock } from '../runtime/index.ts'
import type { Sink } from './command.ts'
import { TimedOut } from './errors.ts'
import { wantsColour } from './output.ts'

/** What one step looks like from inside: it says what it waits for. */
export interface Step {
  /** What is seen now; shown beside the step until the next news. */
  readonly seen: (what: string) => void
  /** Fires when the time is up or the person interrupts. */
  readonly signal: AbortSignal
}

/** Tells on stderr what is under way and since when. */
export interface Progress {
  /** One line that stays. */
  say(text: string): void
  warn(text: string): void
  /** Runs a step that may take a while, for at most `timeoutMs`. */
  step<T>(what: string, run: (step: Step) => Promise<T>, options?: { timeoutMs?: number; next?: string }): Promise<T>
}

export interface ProgressOptions {
  sink: Sink
  env: NodeJS.ProcessEnv
  clock: Clock
  signal: () => AbortSignal
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const frameMs = 100
/** How often a log gets a line from somebody who still waits. */
const repeatMs = 15_000

export const progressOn = ({ sink, env, clock, signal }: ProgressOptions): Progress => {
  const colour = wantsColour(sink, env)
  const paint = (code: number, text: string): string => (colour ? `\u001b[${code}m${text}\u001b[0m` : text)
  const live = Boolean(sink.isTTY) && env['TERM'] !== 'dumb'
  const clear = live ? '\r\u001b[2K' : ''
  return {
    say: (text) => void sink.write(`${clear}${text}\n`),
    warn: (text) => void sink.write(`${clear}${paint(33, 'Warning:')} ${text}\n`),
    step: async (what, run, { timeoutMs, next } = {}) => {
      const began = clock.now()
      const time = new AbortController()
      const cancel =
        timeoutMs === undefined ? () => {} : clock.after(timeoutMs, () => time.abort(new Error('time is up')))
      const both = AbortSignal.any([signal(), time.signal])
      let last = ''
      const since = (): string => `${Math.round((clock.now() - began) / 1000)} s`
      const shown = (): string => `${what}${last ? `: ${last}` : ''} (${since()})`
      const ticker = live ? spinner(clock, (frame) => sink.write(`${clear}${paint(36, frame)} ${shown()}`)) : undefined
      const repeat = live ? undefined : every(clock, repeatMs, () => sink.write(`still ${shown()}\n`))
      if (!live) sink.write(`${what}\n`)
      const seen = (news: string): void => {
        if (news === last) return
        last = news
        if (!live && news) sink.write(`  ${news} (${since()})\n`)
      }
      try {
        const result = await run({ seen, signal: both })
        sink.write(live ? `${clear}${paint(32, '✔')} ${what} (${since()})\n` : `done: ${what} (${since()})\n`)
        return result
      } catch (error) {
        if (live) sink.write(`${clear}${paint(31, '✘')} ${shown()}\n`)
        if (time.signal.aborted && !signal().aborted)
          throw new TimedOut(what, Math.round(timeoutMs! / 1000), last, next)
        throw error
      } finally {
        cancel()
        ticker?.()
        repeat?.()
      }
    },
  }
}

const every = (clock: Clock, ms: number, run: () => void): (() => void) => {
  let cancel = clock.after(ms, function again() {
    run()
    cancel = clock.after(ms, again)
  })
  return () => cancel()
}

const spinner = (clock: Clock, draw: (frame: string) => void): (() => void) => {
  let at = 0
  draw(frames[0]!)
  return every(clock, frameMs, () => draw(frames[++at % frames.length]!))
}
