import { ManagedServiceAccount } from '../../api/index.ts'
import { keyOf, parseKey, type KubeObject } from '../../kube/index.ts'
import { watching, type Reconcile, type ReconcileResult } from '../../runtime/index.ts'
import { AllPresent } from '../contract.ts'
import { deleteSecret, keepClusterAccount } from './cluster-account.ts'
import { isToken } from './drift.ts'
import { currentAccount, parentKeyOf, type Hub } from './hub.ts'
import { isOtherCluster, placeOf } from './members.ts'
import { report } from './report.ts'
import { childrenOf, keepSetAccount, removeChildren } from './set-account.ts'

/** Keeps ManagedServiceAccounts, wherever they are. */
export const serviceAccounts = (hub: Hub): void => {
  const inNamespace = (namespace: string): string[] => hub.accounts.list(namespace).map(keyOf)
  const here = ({ metadata }: KubeObject): string[] => inNamespace(metadata.namespace!)
  const boundTo = (isOne: (set: string) => boolean): string[] => {
    const bound = hub.bindings.list().filter(({ spec }) => isOne(spec.clusterSet))
    return [...new Set(bound.map(({ metadata }) => metadata.namespace!))].flatMap(inNamespace)
  }
  hub.manager.controller({
    name: 'managed-service-accounts',
    workers: 16,
    reconcile: reconcile(hub),
    watches: [
      watching(hub.accounts, (account) => [
        keyOf(account),
        ...[parentKeyOf(account)].filter((key) => key !== undefined),
      ]),
      watching(hub.secrets),
      watching(
        hub.bindings,
        here,
        (now, old) => !old || now.metadata.deletionTimestamp !== old.metadata.deletionTimestamp,
      ),
      watching(hub.sets, ({ metadata }) => boundTo((set) => set === metadata.name)),
      watching(
        hub.clusters,
        ({ metadata }) => [...inNamespace(metadata.name!), ...boundTo(() => true)],
        isOtherCluster,
      ),
      watching(hub.addOns, here, (_, old) => !old),
    ],
  })
}

const reconcile =
  (hub: Hub): Reconcile =>
  async (key, signal) => {
    const account = currentAccount(hub, key)
    if (!account || account.metadata.deletionTimestamp) return leave(hub, key, account, signal)
    const endsAt = endOf(account)
    const now = hub.clock.now()
    if (endsAt !== undefined && now >= endsAt) {
      const { name, namespace, uid } = account.metadata
      await hub.client.of(ManagedServiceAccount, namespace).delete(name!, { preconditions: { uid }, signal })
      hub.log.info('a ManagedServiceAccount was deleted: its time is up', { account: key })
      return {}
    }
    const result = await keep(hub, account, signal)
    return sooner(result, endsAt === undefined ? undefined : endsAt - now)
  }

const keep = async (hub: Hub, account: ManagedServiceAccount, signal: AbortSignal): Promise<ReconcileResult> => {
  const { namespace = '' } = account.metadata
  const place = placeOf(hub, namespace)
  if (place.kind === 'cluster') return keepClusterAccount(hub, account, signal)
  if (place.kind === 'sets') return keepSetAccount(hub, account, place, signal)
  await removeChildren(hub, childrenOf(hub, keyOf(account), account.metadata.uid), signal)
  const message = `namespace ${namespace} is neither that of a managed cluster nor bound to a cluster set: nothing is made; create the object in the namespace with the name of a ManagedCluster, or bind a set with clusteradm clusterset bind <set> --namespace ${namespace}`
  await report(hub, account, [AllPresent.noPlace(message)], { clusters: null, troubles: null }, signal)
  return {}
}

/** By `ttlSecondsAfterCreation`. */
const endOf = ({ metadata, spec }: ManagedServiceAccount): number | undefined =>
  spec?.ttlSecondsAfterCreation === undefined
    ? undefined
    : Date.parse(metadata.creationTimestamp!) + spec.ttlSecondsAfterCreation * 1000

const sooner = ({ requeueAfterMs }: ReconcileResult, otherMs: number | undefined): ReconcileResult => {
  const times = [requeueAfterMs, otherMs].filter((ms) => ms !== undefined)
  return times.length > 0 ? { requeueAfterMs: Math.min(...times) } : {}
}

/** Also one whose label was taken off in the meantime: it is known by its UID. */
const removeToken = async (hub: Hub, key: string, signal: AbortSignal): Promise<void> => {
  const secret = hub.secrets.get(key)
  if (secret && isToken(secret)) return deleteSecret(hub, secret, signal)
  const uid = hub.secretUids.get(key)
  const { name, namespace } = parseKey(key)
  if (!secret && uid) await deleteSecret(hub, { metadata: { name, namespace, uid } }, signal)
}

/** It goes, whoever still holds it: its token and what was made from it go now. */
const leave = async (
  hub: Hub,
  key: string,
  account: ManagedServiceAccount | undefined,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  if (hub.clusters.get(parseKey(key).namespace!)) await removeToken(hub, key, signal)
  await removeChildren(hub, childrenOf(hub, key, account?.metadata.uid), signal)
  if (account) return {}
  hub.written.forget(key)
  for (const memory of [hub.secretUids, hub.unconfirmedSince, hub.countedAt]) memory.delete(key)
  return {}
}
