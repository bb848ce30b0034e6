import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What the managed clusters of the demo are called, on the hub and as contexts of its kubeconfig. */
export const clusters = ['paris', 'tokyo'] as const

/** What a running demo leaves for others to find: in `.demo` of the checkout, or where LANYARD_DEMO says. */
export interface Place {
  folder: string
  /** The process that holds everything. */
  pid: string
  /** Appears when the clusters run. */
  ready: string
  /** Appears when the story has been told to its end; until then the demo is half of one. */
  told: string
  /** One kubeconfig with a context for each cluster. */
  kubeconfig: string
  log: string
}

export const demoPlace = (
  folder = process.env['LANYARD_DEMO'] ?? new URL('../../.demo', import.meta.url).pathname,
): Place => ({
  folder,
  pid: join(folder, 'pid'),
  ready: join(folder, 'ready'),
  told: join(folder, 'told'),
  kubeconfig: join(folder, 'kubeconfig'),
  log: join(folder, 'log'),
})

/** The process of a running demo. A file of an earlier one, whose process is gone or was replaced, does not count. */
export const runningDemo = (place: Place): number | undefined => {
  if (!existsSync(place.pid)) return undefined
  const pid = Number(readFileSync(place.pid, 'utf8'))
  try {
    const [, program, folder] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return program?.endsWith('demo/serve.ts') && folder === place.folder ? pid : undefined
  } catch {
    return undefined
  }
}
