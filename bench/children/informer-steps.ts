import { asked, cpuMs, report, rssMB, settings, usedHeapMB } from './child.ts'

/** The part of an object that both sides look at. */
export interface Seen {
  metadata?: { annotations?: Record<string, string> | undefined } | undefined
}

/** The annotation on the last object that the writer changes: its value is the round. */
export const lastMark = 'bench.lanyard/last'

/**
 * The steps of an informer, the same for both sides: the cache fills, garbage is collected, changes come. `start` settles
 * when the cache is full, with a way to count what is in it.
 */
export const measureInformer = async (
  start: (kubeconfig: string, updated: (object: Seen) => void) => Promise<() => number>,
): Promise<void> => {
  const { kubeconfig, round } = settings as { kubeconfig: string; round: string }
  let updates = 0
  let sawLast = (): void => {}
  const last = new Promise<void>((resolve) => (sawLast = resolve))
  const count = await start(kubeconfig, (object) => {
    updates++
    if (object.metadata?.annotations?.[lastMark] === round) sawLast()
  })
  report({ objects: count(), cpuMs: cpuMs(), rssMB: rssMB(), ms: performance.now() })

  await asked()
  report({ heapMB: usedHeapMB(), rssMB: rssMB() })

  await asked()
  const before = cpuMs()
  report({})
  await last
  report({ updates, cpuPerEventUs: ((cpuMs() - before) * 1000) / updates })
}
