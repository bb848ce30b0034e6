import type { ClusterPair } from '../../aws/index.ts'
import type { Access } from '../../registration/drivers/index.ts'
import type { Seen } from './faults.ts'

/** A service account of the agent, and the role that EKS gives its pods. */
export interface PodAccount {
  readonly name: string
  readonly role: string | undefined
}

/** How a role is in its account: what its trust policy and its tags lack, in words. */
export interface RoleState {
  readonly isThere: boolean
  readonly trust: readonly string[]
  readonly tags: readonly string[]
}

/** What comes of going from the token of a pod over both roles to the hub, as the agent does. */
export type AwsWalk =
  | { readonly kind: 'open' }
  /** Not further than its own role: nobody has let the cluster in yet. */
  | { readonly kind: 'waits' }
  | { readonly kind: 'refused'; readonly at: 'own' | 'hub'; readonly why: string }
  | { readonly kind: 'unmapped'; readonly server: string }
  | { readonly kind: 'clock'; readonly why: string }

/** What lies in AWS between a cluster that has an ARN and its hub. */
export interface AwsView {
  readonly pair: ClusterPair
  /** The issuer of the managed cluster's tokens, without its scheme. */
  readonly oidcProvider: Seen<string>
  /** By how much the clock of the managed cluster is before ours. */
  readonly skewMs: Seen<number>
  readonly accounts: Seen<readonly PodAccount[]>
  readonly walk: Seen<AwsWalk>
  /** The role in the cluster's own account. */
  readonly ownRole: Seen<RoleState>
  /** The role in the hub's account. */
  readonly hubRole: Seen<RoleState>
  /** How the hub has written down that it maps the role; undefined where it has given nothing. */
  readonly record: Seen<Access | undefined>
  /** Whether the hub maps the role, as far as that can be read where it should be. */
  readonly mapping: Seen<boolean>
}
