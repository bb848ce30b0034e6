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
  /** The process of the example add-on, which runs beside the hub. */
  addOn: string
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
  addOn: join(folder, 'add-on.pid'),
})

/** The process of a running demo. A file of an earlier one, whose process is gone or was replaced, does not count. */
export const runningDemo = (place: Place): number | undefined =>
  processIn(place.pid, ([, program, folder]) => program?.endsWith('demo/serve.ts') === true && folder === place.folder)

/** The same for its add-on. */
export const runningAddOn = (place: Place): number | undefined =>
  processIn(place.addOn, ([, program]) => program === exampleAddOn)

/** What the story runs as an add-on. */
export const exampleAddOn = new URL('../../examples/hello.ts', import.meta.url).pathname

const processIn = (file: string, isOurs: (words: string[]) => boolean): number | undefined => {
  if (!existsSync(file)) return undefined
  const pid = Number(readFileSync(file, 'utf8'))
  try {
    return isOurs(readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')) ? pid : undefined
  } catch {
    return undefined
  }
}
