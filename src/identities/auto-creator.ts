import { AWSClusterControllerIdentity } from '../api/index.ts'
import { ConfigMap, isAlreadyExists } from '../kube/index.ts'
import { timestamp, watching, type Reconcile } from '../runtime/index.ts'
import { controllerReference, identityKey, singleton } from './contract.ts'
import type { Room } from './room.ts'
import { clustersUsing } from './users.ts'

/** Where it is noted that there was an AWSClusterControllerIdentity once. */
const memory = 'lanyard-aws-identities'
const field = 'controllerIdentitySeen'
const key = identityKey(controllerReference, '')

/**
 * Makes the AWSClusterControllerIdentity that clusters from before there were identities need, open to all namespaces. Once: that one
 * was there is written down, so that a person who deletes it to close the account keeps it closed, also over restarts.
 */
export const autoCreator = (room: Room): void => {
  const { records } = room
  let isNoted = false
  const reconcile: Reconcile = async (_, signal) => {
    const present = records.controllers.get(singleton)
    const isNeeded = clustersUsing(records, key).length > 0
    if (isNoted || (!present && !isNeeded)) return {}
    const maps = room.client.of(ConfigMap, records.controllerNamespace)
    const noted = await maps.find(memory, { signal })
    isNoted = noted?.data?.[field] !== undefined
    if (isNoted) return {}
    if (!present && !room.settings.autoControllerIdentityCreator) return {}
    if (!present) await create(room, signal)
    const data = { [field]: timestamp(room.clock.now()) }
    await maps.apply(
      { metadata: { namespace: records.controllerNamespace, name: memory }, data },
      { fieldManager: 'lanyard', force: true, signal },
    )
    isNoted = true
    return {}
  }
  room.manager.controller({
    name: 'aws-controller-identity',
    workers: 1,
    reconcile,
    watches: [
      watching(records.controllers, () => [singleton]),
      watching(records.clusters, () => [singleton]),
      watching(records.roles, () => [singleton]),
    ],
  })
}

const create = async (room: Room, signal: AbortSignal): Promise<void> => {
  const wanted: AWSClusterControllerIdentity = { metadata: { name: singleton }, spec: { allowedNamespaces: {} } }
  try {
    const made = await room.client.of(AWSClusterControllerIdentity).create(wanted, { fieldManager: 'lanyard', signal })
    room.events.record(made, {
      type: 'Normal',
      reason: 'ControllerIdentityCreated',
      action: 'Create',
      note: 'made for clusters without an identityRef and open to all namespaces; to close it, delete it, or delete it and create it with allowedNamespaces: it is not made again',
    })
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
  }
}
