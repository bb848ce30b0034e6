import type { Lease } from '../../kube/index.ts'
import { idOf } from '../../registration/agent/index.ts'
import { Joined, silenceMs } from '../../registration/contract.ts'
import { isTrue } from '../../runtime/index.ts'
import { perhaps, unseen } from './faults.ts'
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

/**
 * Of an agent in mode Hosted nothing is on the cluster that it manages: it runs on another. That it lives and nothing of it is
 * here is how we know; where, nothing says.
 */
export const refuseElsewhere = (s: Snapshot): void => {
  const { hub, managed } = s
  const cluster = perhaps(hub?.clusters)?.find(({ metadata }) => metadata.name === s.name)
  const id = cluster && idOf(cluster)
  const here = managed && [managed.klusterlet, managed.bootstrap, managed.credential]
  const isEmpty = here?.every((one) => 'is' in one && one.is === undefined)
  if (!isEmpty || !id || !perhaps(managed!.ids)?.includes(id) || !isAlive(s)) return
  unseen('its agent runs on another cluster (mode Hosted): give that one as --managed-kubeconfig or --managed-context')
}
