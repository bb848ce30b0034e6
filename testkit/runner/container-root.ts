import { mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Container } from './kinds.ts'

/** What `src/kube` reads its in-cluster files from, where it is not the usual place. */
export const accountFolderVariable = 'KUBERNETES_SERVICE_ACCOUNT_FOLDER'
const accountFolder = '/var/run/secrets/kubernetes.io/serviceaccount'

/**
 * Stands in for a container's root: processes here share one file system, so each mount is made below a folder of the
 * container's own, and every mention of a mount path in its words is led there. A path that is written in a mounted file
 * is not: files that name each other do so relatively.
 */
export class ContainerRoot {
  readonly path: string
  readonly #mounts: string[]

  constructor(path: string, container: Container, volumePath: (name: string) => string) {
    this.path = path
    mkdirSync(path, { recursive: true })
    const mounts = (container.volumeMounts ?? []).map((mount) => ({
      ...mount,
      mountPath: mount.mountPath.replace(/\/+$/, ''),
    }))
    this.#mounts = mounts.map(({ mountPath }) => mountPath).toSorted((a, b) => b.length - a.length)
    for (const { name, mountPath, subPath = '' } of mounts) {
      mkdirSync(join(path, dirname(mountPath)), { recursive: true })
      symlinkSync(join(volumePath(name), subPath), join(path, mountPath))
    }
  }

  /** The words with each mount path led to where it is. */
  map(text: string): string {
    if (this.#mounts.length === 0) return text
    const any = this.#mounts.map((mount) => mount.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)).join('|')
    return text.replaceAll(new RegExp(`(?<![\\w./-])(${any})(?![\\w.-])`, 'g'), (found) => this.path + found)
  }

  /** Where the files are with which a program in a pod finds its API server. */
  get account(): Record<string, string> {
    return this.#mounts.includes(accountFolder) ? { [accountFolderVariable]: join(this.path, accountFolder) } : {}
  }
}
