import { execFile } from 'node:child_process'
import { request as plainRequest } from 'node:http'
import { request as secureRequest } from 'node:https'
import { connect } from 'node:net'
import { sleep, type Clock } from '../../src/runtime/index.ts'
import type { Container, Probe } from './kinds.ts'

/** Where a probe's question goes. */
export interface ProbeTarget {
  container: Container
  /** The pod's own address. */
  address: string
  env: Readonly<Record<string, string>>
}

// A node asks once in a while; here somebody waits for the answer.
const impatientMs = 200

/** Asks until the signal ends it, and tells each change of the verdict, which begins as `false`. */
export const follow = async (
  probe: Probe,
  target: ProbeTarget,
  { clock, signal, changed }: { clock: Clock; signal: AbortSignal; changed: (good: boolean) => void },
): Promise<void> => {
  const { initialDelaySeconds = 0, periodSeconds = 10, failureThreshold = 3, successThreshold = 1 } = probe
  let good = false
  let streak = 0
  try {
    await sleep(clock, initialDelaySeconds * 1000, signal)
    for (;;) {
      const passed = await ask(probe, target).catch(() => false)
      streak = passed === good ? 0 : streak + 1
      if (!signal.aborted && streak >= (good ? failureThreshold : successThreshold)) {
        streak = 0
        changed((good = passed))
      }
      await sleep(clock, good ? periodSeconds * 1000 : Math.min(periodSeconds * 1000, impatientMs), signal)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

const ask = (probe: Probe, { container, address, env }: ProbeTarget): Promise<boolean> => {
  const { httpGet, tcpSocket, exec, timeoutSeconds = 1 } = probe
  const timeout = timeoutSeconds * 1000
  const { promise, resolve } = Promise.withResolvers<boolean>()
  if (exec) {
    const [program = '', ...args] = exec.command
    execFile(program, args, { env, timeout }, (error) => resolve(!error))
  } else if (tcpSocket) {
    const socket = connect({ host: tcpSocket.host ?? address, port: portOf(container, tcpSocket.port), timeout })
    const answer = (yes: boolean) => () => {
      socket.destroy()
      resolve(yes)
    }
    socket.once('connect', answer(true)).once('timeout', answer(false)).once('error', answer(false))
  } else if (httpGet) {
    const { host = address, path = '/', scheme = 'HTTP' } = httpGet
    // A kubelet does not verify certificates either: it asks whether the process is well, not who it is.
    const options = {
      host,
      path,
      port: portOf(container, httpGet.port),
      timeout,
      rejectUnauthorized: false,
      agent: false,
    }
    const request = (scheme === 'HTTPS' ? secureRequest : plainRequest)(options, (response) => {
      response.resume()
      resolve(response.statusCode! >= 200 && response.statusCode! < 400)
    })
    request.once('timeout', () => request.destroy(new Error('timeout'))).once('error', () => resolve(false))
    request.end()
  } else throw new Error(`the runner does not know this probe: ${Object.keys(probe).join()}`)
  return promise
}

const portOf = (container: Container, port: number | string): number => {
  if (typeof port === 'number') return port
  const named = container.ports?.find(({ name }) => name === port)
  if (!named) throw new Error(`container ${container.name} has no port ${port}`)
  return named.containerPort
}
