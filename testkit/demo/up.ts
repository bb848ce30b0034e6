/** `make demo`: starts three clusters in the background, sets up a fleet on them, and says how to go on. */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { endDemo } from './end.ts'
import { demoPlace, runningDemo, type Place } from './place.ts'
import { shellIn } from './shell.ts'
import { tell } from './story.ts'

const place = demoPlace()
const write = (text: string): boolean => process.stdout.write(text)
const say = (text: string): boolean => write(`${text}\n`)

const shell = shellIn(place, write)
if (runningDemo(place) && existsSync(place.told)) say('The demo is up.')
else {
  // One that was interrupted half-way is worth nothing: its processes go, and a new one begins.
  if (await endDemo(place)) say('An unfinished demo was running; it has been removed.')
  const began = performance.now()
  await start(place)
  await tell(place, shell, say)
  writeFileSync(place.told, '')
  say(
    `\nThe fleet is up, ${Math.round((performance.now() - began) / 1000)} seconds after nothing, and goes on running.`,
  )
}
const next = [
  ...shell.setup,
  'clusteradm get clusters --context hub',
  'clusteradm get works --context hub',
  'clusteradm get addons --context hub',
  'clusteradm describe cluster paris --context hub',
  'clusteradm doctor paris --context hub                  # what a join waits for, and the command that moves it on',
  'kubectl --context hub get pods -A                     # everything of ours runs as pods, here as processes',
  'kubectl --context paris -n open-cluster-management-agent logs deploy/klusterlet-agent --tail=5',
  'kubectl --context hub patch managedcluster tokyo --type=merge -p \'{"spec":{"hubAcceptsClient":false}}\'   # revoke it',
  'clusteradm unjoin --cluster-name paris --context paris --force                     # leave, and take the works along',
]
say(`\nTry next:\n${next.map((line) => `  ${line}`).join('\n')}\nand end it with\n  make demo-down`)

async function start({ folder, ready, log }: Place): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const out = openSync(log, 'a')
  const program = new URL('serve.ts', import.meta.url).pathname
  say('Starting three Kubernetes control planes: hub, paris and tokyo')
  const child = spawn(process.execPath, [program, folder], { detached: true, stdio: ['ignore', out, out] })
  child.unref()
  // The file appears when all runs; nothing but the file system joins the two processes.
  while (!existsSync(ready)) {
    if (child.exitCode !== null) {
      console.error(readFileSync(log, 'utf8'))
      throw new Error(`the demo ended with code ${child.exitCode}: its log is above and in ${log}`)
    }
    await pause(100)
  }
}
