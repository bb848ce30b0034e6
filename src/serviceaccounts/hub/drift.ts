import type { ManagedServiceAccount } from '../../api/index.ts'
import { contains, firstOf, type Reason } from '../../runtime/index.ts'
import { managedLabels, mark, tokenSecretType } from '../contract.ts'
import type { SeenSecret } from './hub.ts'

/** A token Secret beside the object that it belongs to. */
export interface Pair {
  readonly account: ManagedServiceAccount
  readonly secret: SeenSecret
}

export const ownsSecret = ({ account, secret }: Pair): boolean =>
  (secret.metadata.ownerReferences ?? []).some(({ uid }) => uid === account.metadata.uid)

/** An agent wrote it, for this object or one before it of the same name, whatever became of it since. */
const isSigned = ({ metadata }: SeenSecret): boolean => metadata.annotations?.[mark.digest] !== undefined

/** Whether an agent wrote it, for whichever object: a label alone makes nothing ours to delete. */
export const isToken = ({ metadata }: SeenSecret): boolean =>
  isSigned({ metadata }) ||
  (metadata.ownerReferences ?? []).some(({ kind, name }) => kind === 'ManagedServiceAccount' && name === metadata.name)

/** Whether label and owner are as they must be: without them the agent may not write it, and nobody finds it. */
export const isMarked = ({ account, secret }: Pair): boolean =>
  contains(secret.metadata.labels, managedLabels) && ownsSecret({ account, secret })

/**
 * Whether a Secret whose label was taken off is the agent's: by its owner, by what is in it, or because it had the label
 * before (`knownUid`). One that is none of these is somebody else's.
 */
export const isOurs = ({ account, secret }: Pair, knownUid: string | undefined): boolean =>
  ownsSecret({ account, secret }) ||
  secret.metadata.uid === knownUid ||
  isSigned(secret) ||
  (secret.seen !== undefined && secret.seen.digest === account.status?.tokenSecretRef?.digest)

/** What cannot be mended in place: the Secret has to be deleted and made again. */
export const unwritable = firstOf<Pair>([
  ({ secret }) => secret.immutable === true && { reason: 'Immutable', message: 'it was made immutable' },
  ({ secret }) =>
    secret.type !== tokenSecretType && {
      reason: 'OtherType',
      message: `its type is ${secret.type}, not ${tokenSecretType}`,
    },
])

/** What is wrong with the content of a Secret; a token never appears in it. */
export const contentTrouble = ({ secret }: Pair): Reason | undefined =>
  secret.metadata.annotations?.[mark.digest] === secret.seen?.digest
    ? undefined
    : { reason: 'ContentChanged', message: 'somebody changed its content' }

/** The content is one that the agent has not reported: it is about to, or somebody has put another one there. */
export const unconfirmed = ({ account, secret }: Pair): Reason | undefined =>
  secret.seen?.digest === account.status?.tokenSecretRef?.digest
    ? undefined
    : { reason: 'Unconfirmed', message: 'its content is not what the agent reported' }
