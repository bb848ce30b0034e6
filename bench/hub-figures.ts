import type { LanyardProcess } from '../testkit/index.ts'

/** One figure of a process, from its own metrics. */
export const metricOf = async (process: LanyardProcess, name: string): Promise<number> => {
  const line = (await process.metrics()).split('\n').find((one) => one.startsWith(`${name} `))
  return Number(line?.split(' ')[1])
}

/** How many requests a process has sent to its API server, and how many of them change something. */
export const requestsOf = async (process: LanyardProcess): Promise<{ all: number; writes: number }> => {
  const lines = (await process.metrics()).split('\n').filter((line) => line.startsWith('rest_client_requests_total{'))
  const count = (which: (line: string) => boolean): number =>
    lines.filter(which).reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  return { all: count(() => true), writes: count((line) => !line.includes('method="GET"')) }
}
