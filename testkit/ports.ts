import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * A port on 127.0.0.1 that is free now. It lies below the range from which systems take ports for outgoing connections,
 * so that none of those can take it before the server listens, or while the server is being restarted.
 */
export const freePort = async (): Promise<number> => {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(20_000, 32_000)
    if (await isFree(port)) return port
  }
  throw new Error('no free port between 20000 and 32000 on 127.0.0.1 in 100 attempts')
}

const isFree = (port: number): Promise<boolean> => {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const server = createServer()
  server.once('error', () => resolve(false))
  server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  return promise
}

/** Why a server did not come up: somebody else took its port in the meantime; new ports help. */
export class PortTaken extends Error {
  override name = 'PortTaken'
}

/** Tries again with new ports as long as some were taken. */
export const withFreePorts = async <T>(start: () => Promise<T>, attempts = 4): Promise<T> => {
  try {
    return await start()
  } catch (error) {
    if (!(error instanceof PortTaken) || attempts <= 1) throw error
    return withFreePorts(start, attempts - 1)
  }
}
