import { isConflict, type Lease, type ObjectApi } from '../../../../kube/index.ts'
import { readsOf, refusals, type Place, type UpdateOptions } from './objects.ts'

/** The lease, which only its agent renews: nobody has to say afterwards how it looks. */
export const leasesOf = (place: Place<Lease>): ObjectApi<Lease> => {
  const { link, feed, wire, resource } = place
  const { keyFor, ...reads } = readsOf(place)
  const update = async (lease: Lease, { signal, timeoutMs }: UpdateOptions = {}): Promise<Lease> => {
    const call = { signal, timeoutMs }
    const renewed = (): Lease => {
      // Some hubs want the version that they have, and tell of it after each renewal.
      const { metadata } = feed.get(keyFor(lease.metadata.name!)) ?? lease
      return { ...lease, apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata }
    }
    const send = (data: Lease): Promise<void> => {
      const { name, resourceVersion } = data.metadata
      const parts = { dataType: wire.dataType, side: 'spec', action: 'update_request' } as const
      return link.publish({ ...parts, resourceId: name, resourceVersion, data }, call)
    }
    try {
      await send(renewed())
    } catch (error) {
      if (!isConflict(error)) throw error
      await feed.refresh(call)
      await send(renewed())
    }
    return lease
  }
  return { ...refusals(link, resource), ...reads, update }
}
