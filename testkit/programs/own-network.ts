/**
 * Runs a program in a network of its own, where nothing can be reached but a few ports of this one. It runs twice: outside, and,
 * started by itself, inside. Sockets with a path do not belong to any network: through them one side hands on to the other.
 *
 *     own-network.ts <folder for sockets> <port,port> <program> [arguments]
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import net, { type NetConnectOpts } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const [first = '', ports = '', ...command] = process.argv.slice(2)
const isInside = first === '--inside'
const folder = isInside ? process.env['OWN_NETWORK']! : mkdtempSync(join(first, 'net-'))
const tcp = (port: string) => ({ host: '127.0.0.1', port: Number(port) })
const unix = (port: string) => ({ path: join(folder, port) })

/** Whoever comes here is taken there. */
const handOn = async (from: NetConnectOpts, to: NetConnectOpts): Promise<void> => {
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    const onward = net.connect({ ...to, allowHalfOpen: true })
    const cut = (): void => void (socket.destroy(), onward.destroy())
    socket.on('error', cut).pipe(onward)
    onward.on('error', cut).pipe(socket)
  })
  await once(server.listen(from), 'listening')
}

/** Ends as the program does, and the program with us. */
const endAs = (child: ChildProcess): void => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => child.kill(signal))
  child.once('error', (error) => {
    process.stderr.write(`a network of its own: ${error.message}\n`)
    process.exitCode = 1
  })
  child.once('close', (code) => {
    if (!isInside) rmSync(folder, { recursive: true, force: true })
    process.exit(code ?? 1)
  })
}

// SIOCSIFFLAGS with IFF_UP and IFF_RUNNING; Node has no call for it, and not every machine has `ip`.
const loopbackUp =
  'import fcntl,socket,struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 0x41))'

const opened = ports.split(',').filter(Boolean)
/** The way in: where the program says how it is. */
const health = command[command.indexOf('--health-port') + 1]
const hasHealth = command.includes('--health-port') && health !== undefined

if (isInside) {
  execFileSync('python3', ['-c', loopbackUp])
  await Promise.all(opened.map((port) => handOn(tcp(port), unix(port))))
  if (hasHealth) await handOn(unix(health), tcp(health))
  const program = spawn(command[0]!, command.slice(1), { stdio: ['ignore', 'inherit', 'inherit'] })
  endAs(program)
  // The one outside has been killed: nobody will ask for us again.
  process.stdin.resume().once('end', () => program.kill('SIGKILL'))
} else {
  await Promise.all(opened.map((port) => handOn(unix(port), tcp(port))))
  if (hasHealth) await handOn(tcp(health), unix(health))
  const userToo = process.getuid?.() === 0 ? [] : ['--map-root-user']
  const itself = [process.execPath, fileURLToPath(import.meta.url), '--inside', ports, ...command]
  const inside = spawn('unshare', ['--net', ...userToo, ...itself], {
    env: { ...process.env, OWN_NETWORK: folder },
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  endAs(inside)
}
