import { resource, type Client, type KubeObject, type Resource, type ResourceAttributes } from '../../kube/index.ts'
import { inParallel } from '../../runtime/index.ts'
import type { Obstacle } from './bundle.ts'

interface Review extends KubeObject {
  spec: { resourceAttributes: ResourceAttributes }
  status?: { allowed?: boolean }
}

const SelfSubjectAccessReview = resource<Review>({
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
  namespaced: false,
})

/** Something that the person who moves has to be allowed. */
export interface Need {
  readonly verb: string
  readonly kind: Pick<Resource, 'group' | 'plural'>
  readonly namespace?: string | undefined
}

/** What the person may not do and would have to, as the API server's authorizer sees it now. */
export const missingRights = async (
  client: Client,
  side: 'source' | 'target',
  needs: readonly Need[],
  signal: AbortSignal,
): Promise<Obstacle[]> => {
  const once = [
    ...new Map(
      needs.map((need) => [`${need.verb} ${need.kind.plural}.${need.kind.group} ${need.namespace}`, need]),
    ).values(),
  ]
  const missing: Need[] = []
  await inParallel(
    16,
    once.map((need) => async () => {
      const { verb, kind, namespace } = need
      const resourceAttributes = { verb, group: kind.group, resource: kind.plural, ...(namespace ? { namespace } : {}) }
      const { status } = await client
        .of(SelfSubjectAccessReview)
        .create({ metadata: {}, spec: { resourceAttributes } }, { signal })
      if (!status?.allowed) missing.push(need)
    }),
  )
  return missing.map(({ verb, kind, namespace }) => ({
    what: `you may not ${verb} ${kind.plural}${kind.group && `.${kind.group}`}${namespace ? ` in namespace ${namespace}` : ''} at the ${side}, ${client.connection.server}`,
    next: `have it granted, or choose who you are there with ${side === 'source' ? '--context' : '--to-context'}`,
  }))
}
