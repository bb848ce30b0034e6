import { ManagedServiceAccount, ProxyManagedServiceAccount } from '../../api/index.ts'
import { isAlreadyExists, isNotFound, keyOf } from '../../kube/index.ts'
import { equal, ownerReference, setConditions, watching, type ReconcileResult } from '../../runtime/index.ts'
import { AllPresent, mark } from '../contract.ts'
import { currentAccount, fieldManager, type Hub } from './hub.ts'

/**
 * The group of the specification. What is written as `proxy.open-cluster-management.io` is done by an object of the same name in
 * the other group, which belongs to it and follows its spec; what is said of that one is said of this one.
 */
export const proxyAccounts = (hub: Hub): void => {
  hub.manager.controller({
    name: 'proxy-service-accounts',
    workers: 8,
    reconcile: async (key, signal) => {
      const proxy = hub.proxies.get(key)
      if (!proxy || proxy.metadata.deletionTimestamp) return withdraw(hub, key, proxy, signal)
      return mirror(hub, proxy, signal)
    },
    watches: [
      watching(hub.proxies),
      watching(
        hub.accounts,
        undefined,
        (account) => isMirror(account) || hub.proxies.get(keyOf(account)) !== undefined,
      ),
    ],
  })
}

const mirroredUid = ({ metadata }: ManagedServiceAccount): string | undefined => metadata.annotations?.[mark.mirrored]
const isMirror = (account: ManagedServiceAccount): boolean => mirroredUid(account) !== undefined

/** The owner reference does the same; but not while somebody's finalizer holds what was written. */
const withdraw = async (
  hub: Hub,
  key: string,
  proxy: ManagedServiceAccount | undefined,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  const account = currentAccount(hub, key)
  if (!account || account.metadata.deletionTimestamp || !isMirror(account)) return {}
  if (proxy && mirroredUid(account) !== proxy.metadata.uid) return {}
  const { name, namespace, uid } = account.metadata
  await hub.client.of(ManagedServiceAccount, namespace).delete(name!, { preconditions: { uid }, signal })
  return {}
}

const mirror = async (hub: Hub, proxy: ManagedServiceAccount, signal: AbortSignal): Promise<ReconcileResult> => {
  const { name = '', namespace, uid } = proxy.metadata
  const key = keyOf(proxy)
  const accounts = hub.client.of(ManagedServiceAccount, namespace)
  const metadata = {
    name,
    namespace,
    annotations: { [mark.mirrored]: uid! },
    ownerReferences: [ownerReference(proxy, ProxyManagedServiceAccount, { controller: true })],
  }
  const account = currentAccount(hub, key)
  if (!account) {
    try {
      const created = await accounts.create({ metadata, spec: proxy.spec }, { fieldManager, signal })
      hub.written.wrote(key, undefined, created)
    } catch (error) {
      if (!isAlreadyExists(error)) throw error // the watch brings it
    }
    return {}
  }
  const isOwner = (account.metadata.ownerReferences ?? []).some((owner) => owner.uid === uid)
  if (!isOwner && mirroredUid(account) === undefined) {
    const message = `${ManagedServiceAccount.group} has a ManagedServiceAccount ${key} that was not made from this one: it is left as it is; delete one of the two, or choose another name`
    return say(hub, proxy, { conditions: conditionsWith(hub, proxy, AllPresent.taken(message)) }, signal)
  }
  if (account.metadata.deletionTimestamp) return {}
  if (mirroredUid(account) !== uid || !isOwner) {
    // Of one that is no more, or with its marks taken off: made anew, so that old tokens die.
    await accounts.delete(name, { preconditions: { uid: account.metadata.uid }, signal })
    return {}
  }
  if (!equal(account.spec, proxy.spec)) {
    const json = [
      { op: 'test', path: '/metadata/uid', value: account.metadata.uid },
      { op: 'add', path: '/spec', value: proxy.spec ?? {} },
    ]
    hub.written.wrote(key, account, await accounts.patch(name, { json }, { fieldManager, signal }))
    return {} // what is said of the old spec is not said of this one
  }
  return say(hub, proxy, account.status ?? {}, signal)
}

type Status = NonNullable<ManagedServiceAccount['status']>

const conditionsWith = (
  hub: Hub,
  { metadata, status }: ManagedServiceAccount,
  state: ReturnType<typeof AllPresent.taken>,
) => setConditions(status?.conditions, [state], { now: hub.clock.now(), generation: metadata.generation })

const say = async (
  hub: Hub,
  proxy: ManagedServiceAccount,
  status: Status,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  // Generations count the writes of each object for itself.
  const { generation, name = '', namespace, uid, resourceVersion } = proxy.metadata
  const conditions = status.conditions?.map((one) => ({
    ...one,
    ...(generation && { observedGeneration: generation }),
  }))
  const wanted: Status = { ...status, ...(conditions && { conditions }) }
  if (equal(proxy.status ?? {}, wanted)) return {}
  const json = [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
    { op: 'add', path: '/status', value: wanted },
  ]
  await hub.client
    .of(ProxyManagedServiceAccount, namespace)
    .patch(name, { json }, { subresource: 'status', fieldManager, signal })
    .catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
  return {}
}
