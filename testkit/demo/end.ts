import { existsSync, rmSync } from 'node:fs'
import { eventually } from '../eventually.ts'
import { runningDemo, type Place } from './place.ts'

/** Ends a demo, whole or half, and removes what it left. Says whether one was running. */
export const endDemo = async (place: Place): Promise<boolean> => {
  const pid = runningDemo(place)
  if (pid) {
    process.kill(pid, 'SIGTERM')
    await eventually(
      () => {
        if (existsSync(`/proc/${pid}`)) throw new Error(`process ${pid} has not ended yet`)
      },
      { timeoutMs: 60_000 },
    )
  }
  rmSync(place.folder, { recursive: true, force: true })
  return pid !== undefined
}
