import type { ConfigMap, Secret } from '../../src/kube/index.ts'

/** What pods may read of their namespace. */
export interface Sources {
  secret(namespace: string, name: string): Secret | undefined
  configMap(namespace: string, name: string): ConfigMap | undefined
}

/** Something that a pod needs is not there yet; it is tried again when that changes. */
export class NotThereYet extends Error {
  override name = 'NotThereYet'
}

/** The keys of a Secret or ConfigMap, decoded; undefined when an optional one is missing. */
export const contentOf = (
  sources: Sources,
  kind: 'secret' | 'configMap',
  { namespace, name, optional }: { namespace: string; name: string; optional: boolean | undefined },
): Map<string, Buffer> | undefined => {
  const found = sources[kind](namespace, name)
  if (!found && optional) return undefined
  if (!found) throw new NotThereYet(`${kind.toLowerCase()} "${name}" not found`)
  const data = Object.entries(found.data ?? {})
  const encoding = kind === 'secret' ? 'base64' : 'utf8'
  const binary = Object.entries(('binaryData' in found && found.binaryData) || {})
  return new Map([
    ...data.map(([key, text]) => [key, Buffer.from(text, encoding)] as const),
    ...binary.map(([key, text]) => [key, Buffer.from(text, 'base64')] as const),
  ])
}
