import { MoveRefused, type Obstacle, type Steps } from '../../identities/move/index.ts'
import { ReconcileError } from '../../runtime/index.ts'
import { CliError, exitCode } from '../errors.ts'
import type { Move } from './sides.ts'

/** How to go on after a run that was cut off; `isTooLate` when something may be gone at the source. */
export type WayOn = (isTooLate: boolean) => string

export const goOn: WayOn = () => 'nothing is lost: run the same command again to go on from here'
export const goOnOrBack: WayOn = (isTooLate) =>
  isTooLate
    ? `${goOn(isTooLate)}; what is paused stays so until then`
    : `${goOn(isTooLate)}, or with --abort to give the move up; what is paused stays so until then`
export const goOnAborting: WayOn = () =>
  'run the same command again to finish giving up; what is paused stays so until then, and nobody acts'

/** Everything that stands in the way, at once. */
export const refusal = (obstacles: readonly Obstacle[]): CliError =>
  obstacles.length === 1
    ? new CliError(`${obstacles[0]!.what}; nothing was changed`, { next: obstacles[0]!.next })
    : new CliError(`${obstacles.length} things stand in the way of the move; nothing was changed`, {
        next: obstacles.map(({ what, next }) => `- ${what}\n  ${next}`).join('\n'),
      })

/** Carries something out in steps. Errors of the room come in the words of the command line, with the ways that are left. */
export const told = async (cli: Move, wayOn: WayOn, run: (steps: Steps) => Promise<void>): Promise<void> => {
  let isTooLate = false
  const steps: Steps = {
    clock: cli.clock,
    step: (what, act, { next, noWayBack = false } = {}) => {
      isTooLate ||= noWayBack
      const longer = `${wayOn(isTooLate)}; --timeout gives it longer`
      return cli.progress.step(what, act, {
        timeoutMs: cli.flags.timeout * 1000,
        next: next ? `${next}; ${longer}` : longer,
      })
    },
  }
  try {
    await run(steps)
  } catch (error) {
    if (error instanceof MoveRefused) throw refusal(error.obstacles)
    if (error instanceof CliError) throw error
    if (cli.signal.aborted)
      throw new CliError('interrupted', { next: wayOn(isTooLate), code: exitCode.interrupted, cause: error })
    const message = error instanceof Error ? error.message : String(error)
    // Those of ours say themselves what is next.
    throw new CliError(message, {
      ...(error instanceof ReconcileError ? {} : { next: wayOn(isTooLate) }),
      cause: error,
    })
  }
}
