import type { Bundle } from './bundle.ts'
import type { Present } from './target.ts'

/** The namespace as it will be: its own labels where it exists, else those that permission depends on. */
export const spaceAfter = (
  bundle: Bundle,
  { namespace }: Present,
): { name: string; labels: Record<string, string> } => ({
  name: bundle.namespace,
  labels: namespace ? (namespace.metadata.labels ?? {}) : neededLabels(bundle),
})

/** Labels that selectors of the identities ask about. Others are not brought: on the target they may mean something else. */
export const neededLabels = ({ items, labels }: Bundle): Record<string, string> => {
  const keys = new Set(
    items.flatMap(({ object }) => {
      const { allowedNamespaces } = (object['spec'] ?? {}) as {
        allowedNamespaces?: { selector?: { matchLabels?: object; matchExpressions?: { key: string }[] } }
      }
      const { matchLabels = {}, matchExpressions = [] } = allowedNamespaces?.selector ?? {}
      return [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)]
    }),
  )
  return Object.fromEntries(Object.entries(labels).filter(([key]) => keys.has(key)))
}

/** A namespace that exists there is somebody's: it is not given labels that open accounts to it. */
export const labelHint = (bundle: Bundle, { namespace }: Present): string => {
  const missing = Object.entries(neededLabels(bundle)).filter(
    ([key, value]) => namespace && namespace.metadata.labels?.[key] !== value,
  )
  if (missing.length === 0) return ''
  return `; at the source the namespace has labels that it lacks on the target: kubectl label namespace ${bundle.namespace} ${missing.map(([key, value]) => `${key}=${value}`).join(' ')}`
}
