import { parseKey } from '../kube/index.ts'
import { watching, type Reconcile } from '../runtime/index.ts'
import { secretOf } from './chain.ts'
import { FollowedSecrets } from './followed-secrets.ts'
import { keyOfIdentity } from './identity.ts'
import { namesOf, staticsOn } from './records.ts'
import type { Room } from './room.ts'
import type { AccessKeys } from './sources.ts'
import { clustersUsing } from './users.ts'

/** A Secret that changes takes effect at once: on those that use it directly, and on every chain that begins with it. */
export const followSecrets = (room: Room, keys: AccessKeys, enqueue: (cluster: string) => void): void => {
  const { records } = room
  let changed: (secret: string) => void = () => {}
  const secrets = new FollowedSecrets({
    client: room.client,
    clock: room.clock,
    log: room.log,
    wanted: () =>
      new Set(
        records.statics
          .list()
          .filter(({ spec }) => spec?.secretRef)
          .map((identity) => secretOf(identity, records.controllerNamespace).namespace),
      ),
    changed: (secret) => changed(secret),
  })
  const reconcile: Reconcile = async (key, signal) => {
    const { namespace = '', name } = parseKey(key)
    const users = staticsOn(records, key)
    if (users.length === 0) {
      keys.forget({ namespace, name })
      return {}
    }
    if (!(await keys.differs({ namespace, name }, signal))) return {}
    room.credentials.forget({ secret: { namespace, name } })
    for (const identity of users)
      for (const cluster of namesOf(clustersUsing(records, keyOfIdentity('AWSClusterStaticIdentity', identity))))
        enqueue(cluster)
    return {}
  }
  room.manager.controller({
    name: 'aws-secrets',
    workers: 4,
    reconcile,
    watches: [
      (add) => {
        changed = (secret) => staticsOn(records, secret).length > 0 && add(secret)
        return () => (changed = () => {})
      },
      watching(records.statics, (identity) => {
        secrets.refresh()
        if (!identity.spec?.secretRef) return []
        const { namespace, name } = secretOf(identity, records.controllerNamespace)
        return [`${namespace}/${name}`]
      }),
    ],
  })
  room.manager.add({ name: 'aws-secrets', run: (signal) => secrets.run(signal) })
}
