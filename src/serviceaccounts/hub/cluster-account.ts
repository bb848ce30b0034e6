import type { ManagedServiceAccount } from '../../api/index.ts'
import { ManagedServiceAccount as Kind } from '../../api/index.ts'
import { isConflict, isNotFound, keyOf, Secret } from '../../kube/index.ts'
import { findCondition, ownerReference, type ConditionState, type ReconcileResult } from '../../runtime/index.ts'
import { addOnName, AllPresent, managedLabels, SecretCreated, TokenReported } from '../contract.ts'
import { contentTrouble, isMarked, isOurs, unconfirmed, unwritable, type Pair } from './drift.ts'
import { fieldManager, seenSecret, type Hub, type SeenSecret } from './hub.ts'
import { report } from './report.ts'

/** How long the agent may take from writing a Secret to saying so. */
const confirmMs = 10_000
/** How often a Secret that is somebody else's is looked at: it has no label, so that nobody tells of its end. */
const takenMs = 60_000

/**
 * An object in the namespace of a cluster: its agent does the work, and cannot read Secrets of the hub. So the hub watches over
 * the Secret, and tells the agent by `SecretCreated` when it has to be written anew.
 */
export const keepClusterAccount = async (
  hub: Hub,
  account: ManagedServiceAccount,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  const cluster = account.metadata.namespace!
  if (!hub.addOns.get(`${cluster}/${addOnName}`)) return withoutAgent(hub, account, signal)
  const secret = hub.secrets.get(keyOf(account))
  const reported = account.status?.tokenSecretRef
  if (!reported) return isTaken(account) ? reclaim(hub, account, signal) : {} // nothing that could be missed
  if (isDead(account)) {
    // Not one that the agent has written since.
    if (secret && secret.seen?.digest === reported.digest) await deleteSecret(hub, secret, signal)
    await report(hub, account, [], { expirationTimestamp: null, tokenSecretRef: null }, signal)
    return {}
  }
  if (!secret) return missing(hub, account, signal)
  const pair = { account, secret }
  const isIntact = isMarked(pair) && secret.seen?.otherKeys.length === 0
  return isIntact || unwritable(pair) ? judge(hub, pair, signal) : mend(hub, pair, signal)
}

/** The agent says that there is no account: what the Secret holds is good for nothing. */
const isDead = (account: ManagedServiceAccount): boolean =>
  findCondition(account, TokenReported.type)?.reason === TokenReported.noAccount().reason

const withoutAgent = async (
  hub: Hub,
  account: ManagedServiceAccount,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  const { namespace: cluster, name } = account.metadata
  const secret = hub.secrets.get(keyOf(account))
  if (secret) await deleteSecret(hub, secret, signal)
  const message = `add-on ${addOnName} is not installed on cluster ${cluster}: run clusteradm addon enable --names ${addOnName} --clusters ${cluster}`
  const none = `no agent keeps service account ${name} on cluster ${cluster}`
  const states = [AllPresent.waiting(message), SecretCreated.missing(none), TokenReported.noAccount(none)]
  await report(hub, account, states, { expirationTimestamp: null, tokenSecretRef: null }, signal)
  return {}
}

/** The agent found a Secret that it may not write. */
const isTaken = (account: ManagedServiceAccount): boolean =>
  findCondition(account, SecretCreated.type)?.reason === SecretCreated.taken().reason

/** It may be one of ours whose marks were taken off before the object was made anew. Then the agent can have it back. */
const reclaim = async (hub: Hub, account: ManagedServiceAccount, signal: AbortSignal): Promise<ReconcileResult> => {
  const { name = '', namespace } = account.metadata
  const found = await hub.client.of(Secret, namespace).find(name, { signal })
  const pair = found && { account, secret: seenSecret(found) }
  if (pair && !isOurs(pair, hub.secretUids.get(keyOf(account)))) return {}
  if (pair) await mend(hub, pair, signal)
  const message = `Secret ${namespace}/${name} is free; the agent writes it`
  await report(hub, account, [SecretCreated.changed(message)], {}, signal)
  return {}
}

/** Says something of the Secret, unless it is said already: the agent may be at work on it. */
const tell = async (
  hub: Hub,
  account: ManagedServiceAccount,
  state: ConditionState,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  const told = findCondition(account, SecretCreated.type)
  if (told?.status === 'False' && told.reason !== state.reason) return {}
  await report(hub, account, [state], {}, signal)
  return {}
}

/** Gone, or without its label. The cache may also be behind, so that the server is asked. */
const missing = async (hub: Hub, account: ManagedServiceAccount, signal: AbortSignal): Promise<ReconcileResult> => {
  const { name = '', namespace } = account.metadata
  const found = await hub.client.of(Secret, namespace).find(name, { signal })
  const where = `Secret ${namespace}/${name}`
  if (!found || found.metadata.deletionTimestamp)
    return tell(hub, account, SecretCreated.missing(`${where} was deleted; the agent writes it again`), signal)
  const pair = { account, secret: seenSecret(found) }
  if (isMarked(pair)) return {} // the watch brings it
  if (isOurs(pair, hub.secretUids.get(keyOf(account)))) return mend(hub, pair, signal)
  const message = `${where} is not a token of this object: it is left as it is; delete it, or choose another name`
  await report(hub, account, [SecretCreated.taken(message), TokenReported.failed(message)], {}, signal)
  return { requeueAfterMs: takenMs }
}

/** Puts label and owner back, and takes out what was added. The agent may then write the Secret again, if its content needs it. */
const mend = async (hub: Hub, { account, secret }: Pair, signal: AbortSignal): Promise<ReconcileResult> => {
  const { name = '', namespace, uid } = secret.metadata
  const ownerReferences = [ownerReference(account, Kind)]
  const data = Object.fromEntries((secret.seen?.otherKeys ?? []).map((key) => [key, null]))
  const merge = { metadata: { uid, labels: { ...managedLabels }, ownerReferences }, data }
  try {
    await hub.client.of(Secret, namespace).patch(name, { merge }, { fieldManager, signal })
    hub.log.info('a token Secret that somebody changed was mended', { secret: keyOf(secret) })
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
  return {} // the watch brings it, with what there is to say about its content
}

const judge = async (hub: Hub, pair: Pair, signal: AbortSignal): Promise<ReconcileResult> => {
  const { account, secret } = pair
  const where = `Secret ${keyOf(secret)}`
  const stuck = unwritable(pair)
  if (stuck) {
    await deleteSecret(hub, secret, signal)
    return tell(hub, account, SecretCreated.missing(`${where}: ${stuck.message}; it is made again`), signal)
  }
  const changed = contentTrouble(pair)
  if (changed) {
    hub.unconfirmedSince.delete(keyOf(secret))
    return tell(hub, account, SecretCreated.changed(`${where}: ${changed.message}; the agent writes it again`), signal)
  }
  const doubt = unconfirmed(pair)
  const key = keyOf(secret)
  if (!doubt) {
    hub.unconfirmedSince.delete(key)
    return {}
  }
  const now = hub.clock.now()
  const since = hub.unconfirmedSince.get(key) ?? now
  hub.unconfirmedSince.set(key, since)
  if (now < since + confirmMs) return { requeueAfterMs: since + confirmMs - now }
  hub.unconfirmedSince.delete(key)
  return tell(hub, account, SecretCreated.changed(`${where}: ${doubt.message}; the agent writes it again`), signal)
}

/** Takes a token away; only the Secret that was seen. */
export const deleteSecret = async (hub: Hub, { metadata }: SeenSecret, signal: AbortSignal): Promise<void> => {
  if (metadata.deletionTimestamp) return
  const { uid, name, namespace } = metadata
  try {
    await hub.client.of(Secret, namespace).delete(name!, { preconditions: { uid }, signal })
  } catch (error) {
    if (!isConflict(error)) throw error // another one has its name by now
  }
}
