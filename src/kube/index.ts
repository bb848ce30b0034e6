/**
 * Talks to any Kubernetes API; knows nothing of this product.
 *
 * A kubeconfig (or the pod's own files) gives a `Connection`: where the server is and how to prove who we are. A `Client` is
 * made from it with `clientFor`, and `client.of(Secret, 'ns')` reads and writes one kind. Kinds are `Resource<T>` values; the
 * built-in ones are here, ours are in ../api.
 */
export { mayAccess, requesterOf, type Requester } from './access.ts'
export type { Api, ObjectApi } from './api.ts'
export * from './builtin.ts'
export { Client, clientFor, type ApiRequest, type CallOptions, type ClientOptions } from './client.ts'
export type { Connection, Credential, CredentialSource, Impersonation } from './connection.ts'
export { connectionFrom, type ConnectionOptions } from './connection-from.ts'
export { dialTls, tlsOptions, type Dialing } from './dial.ts'
export { KindMapper, type ServedResource } from './discovery.ts'
export {
  ApiError,
  ConnectionError,
  isAlreadyExists,
  isConflict,
  isExpired,
  isForbidden,
  isInvalid,
  isNotFound,
  isTooManyRequests,
  isUnauthorized,
  type FailedRequest,
  type StatusBody,
} from './errors.ts'
export { explainNetworkError } from './explain.ts'
export { inCluster } from './in-cluster.ts'
export { loadKubeconfig, parseKubeconfig, type Environment, type Kubeconfig } from './kubeconfig.ts'
export { KubeconfigError } from './kubeconfig-error.ts'
export { kubeconfigText, writeKubeconfig, type KubeconfigParts } from './kubeconfig-text.ts'
export { matchesSelector } from './match-labels.ts'
export * from './objects.ts'
export { apiVersionOf, pathOf, resource, type Resource } from './resource.ts'
export {
  ResourceClient,
  type DeleteOptions,
  type ListOptions,
  type Patch,
  type WriteOptions,
} from './resource-client.ts'
export { decoded, effective, encoded, type SecretChange, type SecretData } from './secret-data.ts'
export { servedResources } from './served-resources.ts'
export { Slots } from './slots.ts'
export type { AnswerReport } from './transport.ts'
export { usualClient } from './usual-client.ts'
export { initialEventsEnd, type WatchBatch, type WatchEvent, type WatchOptions } from './watch.ts'
export { parseYaml } from './yaml-document.ts'
