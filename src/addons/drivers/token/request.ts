import {
  ApiError,
  ConnectionError,
  isForbidden,
  isInvalid,
  isNotFound,
  isTooManyRequests,
  isUnauthorized,
  ServiceAccount,
  type Api,
} from '../../../kube/index.ts'
import { describeError, firstOf, type Reason } from '../../../runtime/index.ts'
import type { Account } from './refresh.ts'

interface TokenAnswer {
  status?: { token?: string }
}

/** Asks the hub, as the cluster, for a token of an add-on's account. */
export const requestToken = async (
  hub: Api,
  { namespace, account }: Account,
  expirationSeconds: number,
  signal: AbortSignal,
): Promise<string> => {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds } }
  const answer = await hub
    .of(ServiceAccount, namespace)
    .subresource<TokenAnswer>(account, 'token', { method: 'POST', body }, { signal })
  return answer.status?.token ?? ''
}

interface Failure {
  error: unknown
  account: Account
}

const named = ({ namespace, account }: Account): string => `service account ${namespace}/${account}`

/** Why there is no token, and what to do about it. Programs count the reason; the message is for the condition. */
const failures = firstOf<Failure>([
  ({ error }) =>
    isUnauthorized(error) && {
      reason: 'ClusterCredentialRefused',
      message:
        "the hub refuses the cluster's own credential, with which tokens are requested; the agent gets a new one, see /readyz of the agent",
    },
  ({ error, account }) =>
    isForbidden(error) && {
      reason: 'NotAllowed',
      message: `the hub does not let this cluster request tokens for ${named(account)}: its add-on manager binds the right to the cluster's groups; is the cluster accepted, and is RoleBinding *-token-role there?`,
    },
  // The API says which object it misses; when it says nothing, it misses the whole endpoint.
  ({ error, account }) =>
    isNotFound(error) &&
    (error.details.name
      ? {
          reason: 'AccountMissing',
          message: `${named(account)} does not exist on the hub; its add-on manager makes it again`,
        }
      : {
          reason: 'TokenRequestUnsupported',
          message:
            'the hub has no TokenRequest API: it is older than Kubernetes 1.20; upgrade it, or use --addon-kubeclient-registration-auth=csr',
        }),
  ({ error }) =>
    isInvalid(error) && {
      reason: 'LifetimeRefused',
      message: `the hub refuses --addon-token-expiration-seconds (token.expirationSeconds of the Klusterlet); the least that Kubernetes takes is 600: ${error.serverMessage}`,
    },
  ({ error }) => isTooManyRequests(error) && { reason: 'HubBusy', message: 'the hub is busy; trying again' },
  ({ error }) =>
    (error instanceof ConnectionError || (error instanceof ApiError && error.status >= 500)) && {
      reason: 'HubUnreachable',
      message: `the hub does not answer; trying again: ${describeError(error)}`,
    },
])

/** The reason of a failed TokenRequest. */
export const whyNoToken = (error: unknown, account: Account): Reason =>
  failures({ error, account }) ?? { reason: 'RequestFailed', message: describeError(error) }
