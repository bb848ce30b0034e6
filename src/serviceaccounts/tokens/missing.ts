import type { ManagedCluster, ManagedServiceAccount } from '../../api/index.ts'
import type { Secret } from '../../kube/index.ts'
import { findCondition, firstOf, type Check } from '../../runtime/index.ts'
import { TokenReported } from '../contract.ts'
import { addressAdvice, addressOf } from './address.ts'
import { readTokenSecret } from './token-secret.ts'

/** What is known about a token that is asked for. */
export interface Sought {
  clusterName: string
  name: string
  cluster: ManagedCluster | undefined
  account: ManagedServiceAccount | undefined
  secret: Secret | undefined
}

/** No token can be had. `reason` is for programs; the message says what to do. */
export class TokenError extends Error {
  override name = 'TokenError'
  readonly reason: string

  constructor({ reason, message }: { reason: string; message: string }) {
    super(message)
    this.reason = reason
  }
}

const key = ({ clusterName, name }: Sought): string => `${clusterName}/${name}`

const checks: Check<Sought>[] = [
  (s) =>
    !s.cluster && {
      reason: 'NoCluster',
      message: `there is no ManagedCluster ${s.clusterName} that can be seen: check its name, and the right to read it`,
    },
  (s) =>
    !s.account && {
      reason: 'NoAccount',
      message: `there is no ManagedServiceAccount ${key(s)}: create it, or correct the name`,
    },
  (s) =>
    !s.secret && {
      reason: 'NoToken',
      message: `ManagedServiceAccount ${key(s)} has no token yet: ${reportOf(s.account!)}`,
    },
  (s) => {
    const read = readTokenSecret(s.secret!)
    if ('problem' in read) return { reason: 'NotAToken', message: `${read.problem}: ${reportOf(s.account!)}` }
    return (
      read.owner !== s.account!.metadata.uid && {
        reason: 'NotAToken',
        message: `Secret ${key(s)} belongs to a former ManagedServiceAccount of that name: its agent writes another`,
      }
    )
  },
  (s) =>
    !addressOf(s.cluster!) && {
      reason: 'NoAddress',
      message: `the hub does not know where ${s.clusterName} is: ${addressAdvice(s.clusterName)}`,
    },
]

/** Why a token cannot be used; undefined when it can. */
export const whyMissing = firstOf(checks)

/** What the agent says about it, or that it says nothing. */
const reportOf = (account: ManagedServiceAccount): string => {
  const said = findCondition(account, TokenReported.type)
  const { name, namespace } = account.metadata
  const look = `kubectl describe managedserviceaccount ${name} -n ${namespace}`
  if (said?.status === 'False') return `${said.reason}: ${said.message}`
  return said
    ? `look at: ${look}`
    : `no agent has answered; is the add-on managed-serviceaccount enabled there? ${look}`
}
