import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What the managed cluster of the demo is called on the hub. */
export const cluster = 'paris'

/** What a running demo leaves for others to find: in `.demo` of the checkout, or where LANYARD_DEMO says. */
export interface Place {
  folder: string
  pid: string
  /** Appears when everything runs. */
  ready: string
  /** Kubeconfigs of the two administrators. */
  hub: string
  managed: string
  log: string
}

export const demoPlace = (
  folder = process.env['LANYARD_DEMO'] ?? new URL('../../.demo', import.meta.url).pathname,
): Place => ({
  folder,
  pid: join(folder, 'pid'),
  ready: join(folder, 'ready'),
  hub: join(folder, 'hub.kubeconfig'),
  managed: join(folder, 'managed.kubeconfig'),
  log: join(folder, 'log'),
})

/** The process of a running demo. A file of an earlier one, whose process is gone or was replaced, does not count. */
export const runningDemo = (place: Place): number | undefined => {
  if (!existsSync(place.pid)) return undefined
  const pid = Number(readFileSync(place.pid, 'utf8'))
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('demo/serve.ts') ? pid : undefined
  } catch {
    return undefined
  }
}
