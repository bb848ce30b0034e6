import { existsSync, rmSync } from 'node:fs'
import { eventually } from '../eventually.ts'
import { runningAddOn, runningDemo, type Place } from './place.ts'

/** Ends a demo, whole or half, and removes what it left. Says whether one was running. */
export const endDemo = async (place: Place): Promise<boolean> => {
  const pid = runningDemo(place)
  // The add-on first: without its hub it would only complain.
  for (const one of [runningAddOn(place), pid]) if (one) await ended(one)
  rmSync(place.folder, { recursive: true, force: true })
  return pid !== undefined
}

const ended = async (pid: number): Promise<void> => {
  process.kill(pid, 'SIGTERM')
  await eventually(
    () => {
      if (existsSync(`/proc/${pid}`)) throw new Error(`process ${pid} has not ended yet`)
    },
    { timeoutMs: 60_000 },
  )
}
