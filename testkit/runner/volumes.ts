import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { AtomicFolder } from './atomic-folder.ts'
import { fieldOf } from './expand.ts'
import type { Pod, ProjectedSource, TokenProjection, Volume } from './kinds.ts'
import { contentOf, NotThereYet, type Sources } from './sources.ts'

export interface VolumeContext {
  pod: Pod
  address: string
  sources: Sources
  /** A token for this projection that is good for a while. */
  token: (of: TokenProjection) => Promise<string>
}

/** The volumes of one pod, as folders below one of its own. */
export class Volumes {
  readonly #folder: string
  readonly #folders = new Map<string, AtomicFolder>()

  constructor(folder: string) {
    this.#folder = folder
  }

  pathOf(volume: string): string {
    return join(this.#folder, volume)
  }

  /** Brings every volume up to date; throws `NotThereYet` with all that is missing. */
  async update(context: VolumeContext): Promise<void> {
    const missing: string[] = []
    for (const volume of context.pod.spec.volumes ?? []) {
      if (volume.emptyDir) mkdirSync(this.pathOf(volume.name), { recursive: true })
      else
        await this.#write(volume, context).catch((error: unknown) => {
          if (!(error instanceof NotThereYet)) throw error
          missing.push(`volume "${volume.name}": ${error.message}`)
        })
    }
    if (missing.length) throw new NotThereYet(missing.join('; '))
  }

  async #write(volume: Volume, context: VolumeContext): Promise<void> {
    const files = new Map<string, Buffer>()
    for (const source of sourcesOf(volume))
      for (const [path, content] of await filesOf(source, context)) files.set(path, content)
    let folder = this.#folders.get(volume.name)
    if (!folder) this.#folders.set(volume.name, (folder = new AtomicFolder(this.pathOf(volume.name), modeOf(volume))))
    folder.write(files)
  }
}

const modeOf = ({ secret, configMap, downwardAPI, projected }: Volume): number | undefined =>
  (secret ?? configMap ?? downwardAPI ?? projected)?.defaultMode

/** Every kind of volume that holds files is a projection with one source. */
const sourcesOf = (volume: Volume): ProjectedSource[] => {
  const { secret, configMap, downwardAPI, projected } = volume
  if (projected) return projected.sources
  if (secret) return [{ secret: { ...secret, name: secret.secretName } }]
  if (configMap) return [{ configMap }]
  if (downwardAPI) return [{ downwardAPI }]
  const kinds = Object.keys(volume).filter((key) => key !== 'name')
  throw new Error(
    `the runner cannot mount volume ${volume.name} (${kinds.join()}); it knows Secrets, ConfigMaps, projections and emptyDir`,
  )
}

const filesOf = async (source: ProjectedSource, context: VolumeContext): Promise<[string, Buffer][]> => {
  const { pod, address, sources } = context
  const { serviceAccountToken, downwardAPI, secret, configMap } = source
  if (serviceAccountToken) return [[serviceAccountToken.path, Buffer.from(await context.token(serviceAccountToken))]]
  if (downwardAPI)
    return (downwardAPI.items ?? []).map(({ path, fieldRef }) => [
      path,
      Buffer.from(fieldOf(pod, fieldRef?.fieldPath ?? '', address)),
    ])
  const of = secret ?? configMap
  if (!of) throw new Error(`the runner does not know this projection: ${Object.keys(source).join()}`)
  const namespace = pod.metadata.namespace!
  const content = contentOf(sources, secret ? 'secret' : 'configMap', {
    namespace,
    name: of.name,
    optional: of.optional,
  })
  if (!content || !of.items) return [...(content ?? [])]
  return of.items.flatMap(({ key, path }): [string, Buffer][] => {
    const value = content.get(key)
    if (!value && !of.optional) throw new NotThereYet(`"${of.name}" has no key "${key}"`)
    return value ? [[path, value]] : []
  })
}
