import { setImmediate } from 'node:timers/promises'
import type { ManifestWork } from '../../api/index.ts'
import type { ServedResource } from '../../kube/index.ts'
import {
  configFor,
  duplicateOf,
  hashOf,
  readManifest,
  staysBehind,
  type Manifest,
  type ManifestConfig,
} from './manifest.ts'

/** Where a manifest goes, once its kind is known on this cluster. */
export interface Target {
  readonly resource: ServedResource
  readonly namespace: string | undefined
  readonly config: Partial<ManifestConfig>
  /** It stays when the work goes, and so is not owned. */
  readonly orphan: boolean
  readonly readOnly: boolean
  /** Changes with everything that decides what is written. */
  readonly hash: string
}

/** One manifest of a plan; its target is filled in as kinds become known. */
export interface Entry extends Manifest {
  target: Target | undefined
}

/** A work, read once for each of its generations. */
export interface Plan {
  readonly uid: string | undefined
  readonly generation: number | undefined
  /** In the order of the work. */
  readonly entries: readonly Entry[]
}

/** Steps after which others get a turn: a work of 10,000 manifests must not stop heartbeats. */
const chunk = 500

export const planFor = async (work: ManifestWork): Promise<Plan> => {
  const { uid, generation } = work.metadata
  const first = new Map<string, Manifest>()
  const entries: Entry[] = []
  for (const [ordinal, source] of (work.spec.workload?.manifests ?? []).entries()) {
    if (ordinal % chunk === chunk - 1) await setImmediate()
    const manifest = readManifest(source, ordinal)
    const twin = first.get(manifest.id)
    if (twin) entries.push({ ...manifest, id: `broken/${ordinal}`, problem: duplicateOf(twin), target: undefined })
    else {
      first.set(manifest.id, manifest)
      entries.push({ ...manifest, target: undefined })
    }
  }
  return { uid, generation, entries }
}

/** Where a manifest goes, from what the server says about its kind; text says why it cannot go there. */
export const targetOf = (work: ManifestWork, manifest: Manifest, resource: ServedResource): Target | string => {
  const { namespaced, group, plural } = resource
  if (namespaced && !manifest.namespace) return `${manifest.kind} is namespaced: add metadata.namespace`
  // Charts put a namespace on cluster-scoped objects too; it has no meaning there.
  const namespace = namespaced ? manifest.namespace : undefined
  const id = { group, resource: plural, namespace: namespace ?? '', name: manifest.name }
  const config = configFor(work.spec, id)
  const orphan = staysBehind(work.spec, id)
  return {
    resource,
    namespace,
    config,
    orphan,
    readOnly: config.updateStrategy?.type === 'ReadOnly',
    hash: hashOf([manifest.hash, config, orphan, work.spec.executor ?? null]),
  }
}
