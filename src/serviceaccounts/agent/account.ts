import type { ManagedServiceAccount } from '../../api/index.ts'
import { isAlreadyExists, ServiceAccount } from '../../kube/index.ts'
import { contains, describeError, firstOf, ownerReference, type Reason } from '../../runtime/index.ts'
import { agentAccount, managedLabels, mark } from '../contract.ts'
import type { AccountAgent } from './agent.ts'

/** The account as it should be used, or why there is none to use. */
export type Standing = { readonly account: ServiceAccount } | { readonly refused: Reason }

interface Claim {
  readonly wanted: ManagedServiceAccount
  readonly present: ServiceAccount
  /** The account that the agent itself runs as. */
  readonly own: ReadonlySet<string>
}

/** Whether it was made by an agent of this add-on, for whichever object: one of the marks is enough, the others may be lost. */
const isMarked = ({ metadata }: ServiceAccount): boolean =>
  contains(metadata.labels, managedLabels) ||
  metadata.annotations?.[mark.ownerUid] !== undefined ||
  (metadata.ownerReferences ?? []).some(({ kind, name }) => kind === ServiceAccount.kind && name === agentAccount)

/** Whether we made it for this very object: by its mark, or by the UID that we reported when its marks were taken off. */
const isOurs = ({ wanted, present }: Claim): boolean =>
  present.metadata.annotations?.[mark.ownerUid] === wanted.metadata.uid ||
  wanted.status?.tokenSecretRef?.accountUID === present.metadata.uid

/** Made for an object of the same name that is no more, or by another agent of this add-on: its tokens must die with it. */
const isStale = (claim: Claim): boolean => !isOurs(claim) && isMarked(claim.present)

/** Why an account that is there must not be used. */
export const accountRefusal = firstOf<Claim>([
  ({ own, present }) =>
    own.has(present.metadata.name!) && {
      reason: 'NameTaken',
      message: `service account ${named(present)} is the agent's own: no token of it leaves the cluster; choose another name`,
    },
  (claim) =>
    !isOurs(claim) &&
    !isStale(claim) && {
      reason: 'NameTaken',
      message: `service account ${named(claim.present)} exists on the managed cluster and was not made for this object: it is not used; choose another name, or delete it there if nobody needs it`,
    },
])

const named = ({ metadata }: ServiceAccount): string => `${metadata.namespace}/${metadata.name}`

/** Whether an account goes when no object asks for it. */
export const isLeftOver = (present: ServiceAccount, own: ReadonlySet<string>): boolean =>
  isMarked(present) && !own.has(present.metadata.name!)

/**
 * The account of an object, made or mended if need be. Nothing is sent when nothing differs. Undefined while the agent's own account
 * is not there, which is what everything here belongs to: the add-on comes or goes, and what was made now would stay for ever.
 */
export const ensureAccount = async (
  agent: AccountAgent,
  wanted: ManagedServiceAccount,
  signal: AbortSignal,
): Promise<Standing | undefined> => {
  const self = agent.accountOf(agentAccount)
  if (!self || self.metadata.deletionTimestamp) return undefined
  const name = wanted.metadata.name!
  const accounts = agent.local.of(ServiceAccount, agent.namespace)
  const claim = (present: ServiceAccount): Claim => ({ wanted, present, own: agent.own })
  let present = agent.accountOf(name)
  if (present && isStale(claim(present)) && !agent.own.has(name)) {
    await accounts.delete(name, { preconditions: { uid: present.metadata.uid }, signal })
    present = undefined
  }
  const metadata = desired(self, wanted)
  if (!present) {
    try {
      const created = await accounts.create({ metadata, automountServiceAccountToken: false }, { signal })
      return { account: agent.wroteAccount(undefined, created) }
    } catch (error) {
      // The cache is behind, or somebody was faster.
      if (!isAlreadyExists(error)) throw error
      present = await accounts.get(name, { signal })
    }
  }
  const refused = accountRefusal(claim(present))
  if (refused) return { refused }
  if (present.metadata.deletionTimestamp)
    return {
      refused: {
        reason: 'BeingDeleted',
        message: `service account ${named(present)} is being deleted and somebody's finalizer holds it; it is made again when it is gone`,
      },
    }
  if (isAsDesired(present, metadata)) return { account: present }
  const { labels, annotations, ownerReferences } = metadata
  const merge = {
    metadata: { uid: present.metadata.uid, labels, annotations, ownerReferences },
    automountServiceAccountToken: false,
  }
  return { account: agent.wroteAccount(present, await accounts.patch(name, { merge }, { signal })) }
}

/** It belongs to the agent's own account, so that the garbage collector removes it when the add-on goes or moves. */
const desired = (self: ServiceAccount, { metadata: { name, uid } }: ManagedServiceAccount) => ({
  name: name!,
  namespace: self.metadata.namespace!,
  labels: { ...managedLabels },
  annotations: { [mark.ownerUid]: uid! },
  ownerReferences: [ownerReference(self, ServiceAccount)],
})

// Pull secrets and annotations of others stay: on some clusters a controller adds them to every account, and would do so again.
const isAsDesired = (
  { metadata, automountServiceAccountToken }: ServiceAccount,
  wanted: ReturnType<typeof desired>,
): boolean =>
  contains(metadata.labels, wanted.labels) &&
  contains(metadata.annotations, wanted.annotations) &&
  automountServiceAccountToken === false &&
  wanted.ownerReferences.every((owner) => metadata.ownerReferences?.some(({ uid }) => uid === owner.uid))

/** Removes an account that nobody asks for any more; every token of it is dead from then on. */
export const removeAccount = async (agent: AccountAgent, name: string, signal: AbortSignal): Promise<void> => {
  const present = agent.accountOf(name)
  if (!present || present.metadata.deletionTimestamp || !isLeftOver(present, agent.own)) return
  const { uid } = present.metadata
  await agent.local.of(ServiceAccount, agent.namespace).delete(name, { preconditions: { uid }, signal })
  agent.log.info('a service account was removed: nobody asks for it any more', { account: name })
}

/** What a failure to read or write an account means for a person. */
export const whyNoAccount = (namespace: string, name: string, error: unknown): string =>
  `service account ${namespace}/${name} could not be made on the managed cluster: ${describeError(error)}`
