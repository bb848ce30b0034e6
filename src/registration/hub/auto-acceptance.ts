import { annotation, finalizer, type ManagedCluster } from '../../api/index.ts'
import { findCondition, firstOf, timestamp, type Check } from '../../runtime/index.ts'
import { Accepted } from '../contract.ts'
import { writeCluster } from './cluster-writes.ts'
import { driverOf } from './hub.ts'
import { permissionsInPlace, type Records } from './records.ts'

interface Asked {
  cluster: ManagedCluster
  isOn: boolean
  /** RBAC of an earlier acceptance; the agent cannot remove it, as it could the annotation. */
  hasPermissions: boolean
  waitsForPerson: ReturnType<ReturnType<typeof driverOf>['waitsForPerson']>
}

const checks: readonly Check<Asked>[] = [
  ({ isOn }) => !isOn && { reason: 'Off', message: 'clusters are accepted by people on this hub' },
  ({ cluster }) =>
    cluster.metadata.annotations?.[annotation.automaticallyAcceptedOn] !== undefined && {
      reason: 'AcceptedBefore',
      message: 'a cluster is accepted automatically once: since then a person has denied it',
    },
  ({ cluster, hasPermissions }) =>
    (hasPermissions || findCondition(cluster, Accepted.type) !== undefined) && {
      reason: 'DecidedBefore',
      message: 'the cluster was accepted before, and a person has denied it',
    },
  ({ waitsForPerson }) => waitsForPerson,
]

/** Why a cluster is not accepted without a person; undefined when it is. */
export const whyNotAutomatically = firstOf(checks)

/** Accepts a new cluster whose identity is listed; false when a person has to. */
export const acceptAutomatically = async (
  records: Records,
  cluster: ManagedCluster,
  signal: AbortSignal,
): Promise<ManagedCluster | undefined> => {
  const isOn = records.settings.gates.managedClusterAutoApproval
  const why = whyNotAutomatically({
    cluster,
    isOn,
    hasPermissions: permissionsInPlace(records, cluster.metadata.name!).length > 0,
    waitsForPerson: isOn ? driverOf(records, cluster).waitsForPerson(cluster) : undefined,
  })
  if (why) {
    if (isOn) records.log.info('a cluster waits for a person', { cluster: cluster.metadata.name, ...why })
    return undefined
  }
  return writeCluster(
    records,
    cluster,
    {
      accepts: true,
      annotations: { [annotation.automaticallyAcceptedOn]: timestamp(records.clock.now()) },
      finalizers: [...new Set([...(cluster.metadata.finalizers ?? []), finalizer.managedCluster])],
    },
    signal,
  )
}
