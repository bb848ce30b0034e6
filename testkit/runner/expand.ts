import type { Pod } from './kinds.ts'

/** `$(NAME)` becomes the variable's value and `$$(NAME)` the text `$(NAME)`; what is not known stays as it is. */
export const expand = (text: string, variables: Readonly<Record<string, string>>): string =>
  text.replaceAll(/\$(\$|\(([^()]*)\))/g, (found, token: string, name: string | undefined) => {
    if (token === '$') return '$'
    return variables[name!] ?? found
  })

/** A field of the pod, as the downward API names it. The address is the one that a process can listen on. */
export const fieldOf = (pod: Pod, path: string, address: string): string => {
  const { metadata, spec } = pod
  const [, map, key] = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path) ?? []
  if (map) return metadata[map as 'labels' | 'annotations']?.[key!] ?? ''
  const fields: Record<string, string | undefined> = {
    'metadata.name': metadata.name,
    'metadata.namespace': metadata.namespace,
    'metadata.uid': metadata.uid,
    'metadata.labels': lines(metadata.labels),
    'metadata.annotations': lines(metadata.annotations),
    'spec.nodeName': spec.nodeName,
    'spec.serviceAccountName': spec.serviceAccountName,
    'status.podIP': address,
    'status.podIPs': address,
    'status.hostIP': '127.0.0.1',
    'status.hostIPs': '127.0.0.1',
  }
  if (!(path in fields))
    throw new Error(`the runner does not know the field ${path}: add it to testkit/runner/expand.ts`)
  return fields[path] ?? ''
}

const lines = (of: Record<string, string> | undefined): string =>
  Object.entries(of ?? {})
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join('\n')
