/**
 * For programs on the hub that talk to managed clusters: `import { openTokens, hubClient } from 'lanyard/tokens'`. The tokens
 * of ManagedServiceAccounts, found by cluster, set or label and always current, as clients that follow every rotation. See
 * docs/guides/tokens.md and examples/pods.ts.
 */
import { usualClient, type Client, type Environment } from '../../kube/index.ts'

export { addressAdvice, addressOf, trustOf, type Address } from './address.ts'
export { TokenError, whyMissing, type Sought } from './missing.ts'
export type { TokenSelection } from './selection.ts'
export { readTokenSecret, type HeldToken } from './token-secret.ts'
export { openTokens, Tokens, type ManagedToken, type TokenHandler, type TokensOptions } from './tokens.ts'
export { ApiError, ConnectionError, resource, type Client, type KubeObject, type Resource } from '../../kube/index.ts'

/** A client of the hub: from the pod's own files in a cluster, else from the usual kubeconfig. */
export const hubClient = (env: Environment, userAgent = 'lanyard-tokens'): Promise<Client> =>
  usualClient(env, userAgent)
