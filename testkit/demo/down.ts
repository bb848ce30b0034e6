/** `make demo-down`: ends the demo, and removes what it left. */
import { existsSync, rmSync } from 'node:fs'
import { eventually } from '../eventually.ts'
import { demoPlace, runningDemo } from './place.ts'

const place = demoPlace()
const pid = runningDemo(place)
if (pid) {
  process.kill(pid, 'SIGTERM')
  await eventually(() => {
    if (existsSync(`/proc/${pid}`)) throw new Error(`process ${pid} has not ended yet`)
  })
}
rmSync(place.folder, { recursive: true, force: true })
console.log(pid ? 'the demo has ended' : 'no demo was running')
