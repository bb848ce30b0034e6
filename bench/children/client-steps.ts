import { cpuMs, report, rssMB, settings } from './child.ts'

interface Settings {
  kubeconfig: string
  name: string
  gets: number
}

/** One GET to open the connection, then the GETs that count, one after the other. */
export const measureGets = async (
  connect: (kubeconfig: string) => (name: string) => Promise<unknown>,
): Promise<void> => {
  const { kubeconfig, name, gets } = settings as Settings
  const get = connect(kubeconfig)
  await get(name)
  const cpuBefore = cpuMs()
  const before = performance.now()
  for (let i = 0; i < gets; i++) await get(name)
  report({ cpuMs: cpuMs() - cpuBefore, ms: performance.now() - before, rssMB: rssMB() })
}
