import type { CallOptions, Client } from './client.ts'
import type { ServedResource } from './discovery.ts'

interface GroupDiscoveryList {
  kind?: string
  items: {
    metadata: { name?: string }
    versions: {
      version: string
      freshness?: 'Current' | 'Stale'
      resources?: {
        resource: string
        responseKind?: { kind: string }
        scope: 'Namespaced' | 'Cluster'
        verbs: string[]
      }[]
    }[]
  }[]
}

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

/**
 * Every kind of the server once, at the version it prefers, in two requests (Kubernetes 1.30 and later). `unreachable` are
 * groups whose own server does not answer.
 */
export const servedResources = async (
  client: Client,
  options: CallOptions = {},
): Promise<{ resources: ServedResource[]; unreachable: string[] }> => {
  const lists = await Promise.all(
    ['/api', '/apis'].map((path) =>
      client.json<GroupDiscoveryList>({ method: 'GET', path, accept: aggregated, ...options }),
    ),
  )
  const resources = new Map<string, ServedResource>()
  const unreachable = new Set<string>()
  for (const { metadata, versions } of lists.flatMap((list) => list.items)) {
    const group = metadata.name ?? ''
    for (const { version, freshness, resources: served } of versions) {
      if (freshness === 'Stale') unreachable.add(group)
      for (const { resource: plural, responseKind, scope, verbs } of served ?? []) {
        const id = `${plural}.${group}`
        if (resources.has(id) || !responseKind?.kind) continue
        resources.set(id, {
          group,
          version,
          kind: responseKind.kind,
          plural,
          namespaced: scope === 'Namespaced',
          verbs,
        })
      }
    }
  }
  return { resources: [...resources.values()], unreachable: [...unreachable] }
}
