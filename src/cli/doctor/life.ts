import type { Lease } from '../../kube/index.ts'
import { Joined, silenceMs } from '../../registration/contract.ts'
import { isTrue } from '../../runtime/index.ts'
import { perhaps } from './faults.ts'
import type { Snapshot } from './snapshot.ts'

/** The heartbeat of the cluster, where we can see it. */
export const leaseOf = ({ hub, name }: Snapshot): Lease | undefined =>
  perhaps(hub?.leases)?.find(({ metadata }) => metadata.namespace === name)

/** How long nothing was heard of the cluster; undefined where we do not know. */
export const silentMs = (s: Snapshot): number | undefined => {
  const renewed = Date.parse(leaseOf(s)?.spec.renewTime ?? '')
  return Number.isNaN(renewed) ? undefined : s.now - renewed
}

/** Whether the hub has heard from the agent lately: all that lies between them works then. */
export const isAlive = (s: Snapshot): boolean => {
  const cluster = perhaps(s.hub?.clusters)?.find(({ metadata }) => metadata.name === s.name)
  const silent = silentMs(s)
  if (!cluster || silent === undefined || !isTrue(cluster, Joined.type)) return false
  return silent <= silenceMs(cluster.spec.leaseDurationSeconds)
}
