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
import type { Report } from './memory.ts'
import type { Namespaces } from './namespaces.ts'
import { isPerNamespace, selected } from './selections.ts'

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

/** A work, read once for each of its generations, and again when other namespaces match what it selects. */
export interface Plan {
  readonly uid: string | undefined
  readonly generation: number | undefined
  /** In the order of the work. */
  readonly entries: readonly Entry[]
  readonly byId: ReadonlyMap<string, Entry>
  /** The manifests that stand for others in chosen namespaces, and what is said about them. */
  readonly selections: readonly { entry: Entry; report: Report }[]
  /** Of the namespaces, when it was made; undefined when it does not choose among them. */
  readonly revision: number | undefined
}

/** Steps after which others get a turn: a work of 10,000 manifests must not stop heartbeats. */
const chunk = 500

/** The plan for a work. Entries that an earlier plan for the same generation has are taken over, with what is known of them. */
export const planFor = async (
  work: ManifestWork,
  namespaces: Pick<Namespaces, 'matching' | 'revision'>,
  earlier?: Plan,
): Promise<Plan> => {
  const { uid, generation } = work.metadata
  const known = earlier?.uid === uid && earlier?.generation === generation ? earlier?.byId : undefined
  const byId = new Map<string, Entry>()
  const { revision } = namespaces
  const entries: Entry[] = []
  let selects = false
  const selections: { entry: Entry; report: Report }[] = []
  const add = (source: unknown, ordinal: number): void => {
    const manifest = readManifest(source, ordinal)
    const twin = byId.get(manifest.id)
    const before = twin ? undefined : known?.get(manifest.id)
    const entry: Entry = twin
      ? { ...manifest, id: `broken/${ordinal}/${entries.length}`, problem: duplicateOf(twin), target: undefined }
      : before?.ordinal === ordinal && before.hash === manifest.hash
        ? before
        : { ...manifest, target: undefined }
    byId.set(entry.id, entry)
    entries.push(entry)
  }
  for (const [ordinal, source] of (work.spec.workload?.manifests ?? []).entries()) {
    if (ordinal % chunk === chunk - 1) await setImmediate()
    if (!isPerNamespace(source)) {
      add(source, ordinal)
      continue
    }
    selects = true
    const choice = selected(source, namespaces)
    const stands = { ...readManifest(source, ordinal), target: undefined }
    // Nobody knows what it stands for, which a name would hide: nothing that the work has delivered may be taken away.
    if (typeof choice === 'string') {
      entries.push({ ...stands, id: `broken/${ordinal}`, name: '', problem: choice })
      continue
    }
    selections.push({ entry: stands, report: choice.report })
    for (const [index, object] of choice.objects.entries()) {
      if (index % chunk === chunk - 1) await setImmediate()
      add(object, ordinal)
    }
  }
  return { uid, generation, entries, byId, selections, revision: selects ? revision : undefined }
}

/** Whether a plan still is what `planFor` would give. */
export const isCurrent = (plan: Plan, work: ManifestWork, namespaces: Pick<Namespaces, 'revision'>): boolean =>
  plan.uid === work.metadata.uid &&
  plan.generation === work.metadata.generation &&
  (plan.revision === undefined || plan.revision === namespaces.revision)

/** Whether a work chooses among namespaces. */
export const selectsNamespaces = (work: ManifestWork): boolean =>
  work.spec.workload?.manifests?.some(isPerNamespace) ?? false

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
