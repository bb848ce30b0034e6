import {
  Lease,
  ServiceAccount,
  type Api,
  type KubeObject,
  type ObjectApi,
  type Resource,
} from '../../../../kube/index.ts'
import { ManifestWork } from '../../../../api/index.ts'
import { Feed } from './feed.ts'
import { leasesOf } from './leases.ts'
import { Link, type LinkOptions } from './link.ts'
import { objectsOf, refusals, type Place } from './objects.ts'
import { accountsOf, Tokens } from './tokens.ts'
import { wireFor } from './wires.ts'
import { worksOf } from './works.ts'

/**
 * The hub as an agent sees it over gRPC, in the shape of a client of its API server: whoever uses it need not know of the wire.
 * Kinds are subscribed to when they are first used.
 */
export const grpcApi = (options: LinkOptions): Api => {
  const link = new Link(options)
  const feeds = new Map<string, Feed<KubeObject>>()
  const tokens = new Tokens(link)

  const feedFor = <T extends KubeObject>(resource: Resource<T>): Pick<Place<T>, 'feed' | 'wire'> | undefined => {
    const wire = wireFor(resource)
    if (!wire) return undefined
    let feed = feeds.get(wire.dataType) as Feed<T> | undefined
    if (!feed) feeds.set(wire.dataType, (feed = new Feed(link, wire)))
    return { feed, wire }
  }
  return {
    connection: link.connection,
    of: <T extends KubeObject>(resource: Resource<T>, namespace?: string): ObjectApi<T> => {
      const known = feedFor(resource)
      if (!known) return outOfReach(link, tokens, resource, namespace)
      const place: Place<T> = { link, ...known, resource, namespace }
      return (special.get(resource) ?? objectsOf)(place as never) as ObjectApi<T>
    },
    close: () => {
      for (const feed of feeds.values()) feed.close()
      tokens.close()
      link.close()
    },
  }
}

const special = new Map<unknown, (place: never) => unknown>([
  [ManifestWork, worksOf],
  [Lease, leasesOf],
])

/** Kinds that no event speaks of. */
const outOfReach = <T extends KubeObject>(
  link: Link,
  tokens: Tokens,
  resource: Resource<T>,
  namespace: string | undefined,
): ObjectApi<T> => {
  const no = refusals(link, resource)
  const none: ObjectApi<T> = {
    ...no,
    resource,
    namespace,
    get: no.subresource,
    find: no.subresource,
    list: no.subresource,
    pages: async function* () {
      yield await no.subresource()
    },
    watch: no.subresource,
  }
  return (resource as unknown) === ServiceAccount
    ? (accountsOf(tokens, namespace, none) as unknown as ObjectApi<T>)
    : none
}
