/** What every measured process shares. It imports nothing of ours: the baseline must not pay for us. */
import { once } from 'node:events'

// The parent is gone or has seen enough.
process.once('disconnect', () => process.exit(0))

/** What the parent wants this process to do. */
export const settings: unknown = JSON.parse(process.argv[2] ?? '{}')

/** Hands figures to the parent. */
export const report = (figures: object): void => {
  process.send!(figures)
}

/** Waits until the parent asks for the next step, and hands back what it said. */
export const asked = async (): Promise<unknown> => {
  const [said] = (await once(process, 'message')) as [unknown]
  return said
}

/** CPU time of all threads since the process began. */
export const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

const mega = 2 ** 20

/** Resident memory. */
export const rssMB = (): number => process.memoryUsage.rss() / mega

/** The heap that is left when everything that can go has gone; needs --expose-gc. */
export const usedHeapMB = (): number => {
  globalThis.gc!()
  globalThis.gc!() // what finalizers of the first round have let go
  return process.memoryUsage().heapUsed / mega
}
