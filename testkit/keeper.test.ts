import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { test } from 'node:test'
import { eventually } from './index.ts'

const testkit = new URL('index.ts', import.meta.url).href

/** A process that uses the testkit as the script says; what the script passes to `tell` comes back. */
const testProcess = async (script: string): Promise<{ child: ChildProcess; told: Told }> => {
  const code = `import * as testkit from ${JSON.stringify(testkit)}
    const tell = (told) => process.stdout.write(JSON.stringify(told) + '\\n')
    ${script}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true, // so that Ctrl-C can be sent to it and its children, and not to us
  })
  let output = ''
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    output += String(chunk)
    if (output.includes('\n')) break
  }
  const told: Told = JSON.parse(output)
  child.stdout.resume()
  return { child, told }
}

interface Told {
  folder: string
  pids: number[]
  port?: number
}

/** A program that starts another one, neither of which mentions the folder. */
const family = `
  const folder = testkit.keptFolder('keeper-test')
  const args = ['-c', 'sleep 1001 & sleep 1002 & wait']
  const family = new testkit.Component({ binary: '/bin/bash', args, folder, ready: async () => true })
  await family.start()
`

const alive = (pid: number): boolean =>
  existsSync(`/proc/${pid}/status`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))

const refused = async (port: number): Promise<boolean> => {
  const socket = connect(port, '127.0.0.1')
  const outcome = await once(socket, 'connect').then(
    () => false,
    () => true,
  )
  socket.destroy()
  return outcome
}

/** The pids of the processes whose parent this is. */
const childrenOf = (pid: number): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((one) => {
      try {
        return new RegExp(`^PPid:\\s+${pid}$`, 'm').test(readFileSync(`/proc/${one}/status`, 'utf8'))
      } catch {
        return false // it has ended in the meantime
      }
    })

const allGone = ({ folder, pids }: Told) =>
  eventually(() => {
    assert.deepEqual(pids.filter(alive), [], 'processes are left')
    assert.equal(existsSync(folder), false, `${folder} is left`)
  })

test('R0.3 a test process killed with a control plane running leaves no process, port or folder', async () => {
  const { child, told } = await testProcess(`
    const { apiServer, etcd, controllerManager, folder, server } = await testkit.startControlPlane()
    tell({ folder, pids: [apiServer.pid, etcd.pid, controllerManager.pid], port: Number(new URL(server).port) })
    setInterval(() => {}, 1000)
  `)
  const keeperAndComponents = childrenOf(child.pid!)
  assert.equal(keeperAndComponents.length, 4)
  assert.equal(told.pids.filter(alive).length, 3)
  assert.equal(await refused(told.port!), false)

  child.kill('SIGKILL')

  await allGone({ ...told, pids: keeperAndComponents })
  assert.equal(await refused(told.port!), true)
})

test('R0.3 Ctrl-C leaves nothing either, not even what the started programs have started', async () => {
  const { child, told } = await testProcess(`${family}
    tell({ folder, pids: [family.pid] })
    setInterval(() => {}, 1000)
  `)
  const pids = await eventually(() => {
    const sleeps = childrenOf(told.pids[0]!)
    return sleeps.length === 2 && [...told.pids, ...sleeps]
  })
  process.kill(-child.pid!, 'SIGINT')
  await allGone({ ...told, pids })
})

test('R0.3 a test process that forgets to stop ends all the same: nothing keeps it or its output open', async () => {
  const { child, told } = await testProcess(`${family}
    tell({ folder, pids: [family.pid] })
  `)
  if (child.exitCode === null || !child.stdout!.closed) await once(child, 'close')
  assert.equal(child.exitCode, 0)
  await allGone(told)
})

test('a process that only mentions the folder is not the keeper’s to end', async (t) => {
  const { child, told } = await testProcess(`${family}
    tell({ folder, pids: [family.pid] })
    setInterval(() => {}, 1000)
  `)
  const bystander = spawn('/bin/sleep', ['1003'], {
    env: { KUBECONFIG: told.folder, X: `LANYARD_KEEPER=${told.folder}` },
  })
  t.after(() => bystander.kill('SIGKILL'))

  child.kill('SIGKILL')

  await allGone(told)
  assert.ok(alive(bystander.pid!))
})
