import type { LabelSelector, Unstructured } from '../../kube/index.ts'
import { apiVersionOf } from '../../kube/index.ts'
import { ManifestApplied, ManifestAvailable, perNamespace, type PerNamespaceSpec } from '../contract.ts'
import type { Report } from './memory.ts'
import type { Namespaces } from './namespaces.ts'

/** Whether a manifest stands for objects in each namespace that a selector matches. */
export const isPerNamespace = (source: unknown): source is Unstructured => {
  const { apiVersion, kind } = (source ?? {}) as Unstructured
  return kind === perNamespace.kind && apiVersion === apiVersionOf(perNamespace)
}

/** What a `PerNamespace` stands for now, and what is to be said about it; or why that is not known. */
export type Selected = { readonly objects: readonly Unstructured[]; readonly report: Report } | string

export const selected = (source: Unstructured, namespaces: Pick<Namespaces, 'matching'>): Selected => {
  const { namespaceSelector, manifests } = (source['spec'] ?? {}) as Partial<PerNamespaceSpec>
  if (!isSelector(namespaceSelector) || !Array.isArray(manifests))
    return 'it needs spec.namespaceSelector and spec.manifests'
  const matching = namespaces.matching(namespaceSelector)
  if (!matching) return 'the namespaces of this cluster are not known yet: the agent needs list and watch on namespaces'
  const objects = matching.flatMap((namespace) =>
    manifests.map((manifest) => ({ ...manifest, metadata: { ...manifest.metadata, namespace } })),
  )
  const message = `${matching.length} ${matching.length === 1 ? 'namespace matches' : 'namespaces match'}`
  return { objects, report: { states: [ManifestApplied.complete(message), ManifestAvailable.available(message)] } }
}

const isSelector = (value: unknown): value is LabelSelector => typeof value === 'object' && value !== null
