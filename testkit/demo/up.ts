/** `make demo`: starts the demo in the background, shows it at work, and says how to go on. */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { controlPlaneBinary } from '../paths.ts'
import { demoPlace, runningDemo, type Place } from './place.ts'
import { tell } from './story.ts'

const place = demoPlace()
if (runningDemo(place)) console.log('the demo runs already')
else await start(place)
await tell(place)
console.log(`
It goes on running. Look around with
  export PATH=${dirname(controlPlaneBinary('kubectl'))}:$PATH
  kubectl --kubeconfig ${place.hub} get managedclusters,manifestworks -A
  kubectl --kubeconfig ${place.managed} get appliedmanifestworks
and end it with
  make demo-down`)

async function start({ folder, pid, ready, log }: Place): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const out = openSync(log, 'a')
  const program = new URL('serve.ts', import.meta.url).pathname
  const env = { ...process.env, LANYARD_DEMO: folder }
  const child = spawn(process.execPath, [program], { detached: true, stdio: ['ignore', out, out], env })
  child.unref()
  writeFileSync(pid, String(child.pid))
  let shown = 0
  const showProgress = (): void => {
    const lines = readFileSync(log, 'utf8').split('\n').slice(0, -1)
    for (const line of lines.slice(shown)) if (!line.startsWith('{')) console.log(`demo: ${line}`)
    shown = lines.length
  }
  // The file appears when all runs; nothing but the file system joins the two processes.
  while (!existsSync(ready)) {
    showProgress()
    if (child.exitCode !== null) {
      console.error(readFileSync(log, 'utf8'))
      throw new Error(`the demo ended with code ${child.exitCode}: its log is above and in ${log}`)
    }
    await pause(100)
  }
  showProgress()
}
