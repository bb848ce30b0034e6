import { signer } from '../../../../api/index.ts'
import type { Api, ClientOptions, Connection, Environment } from '../../../../kube/index.ts'
import { silentLogger, systemClock, type Clock, type Logger } from '../../../../runtime/index.ts'
import { secretKey } from '../../../contract.ts'
import { csrAgentDriver } from '../../csr/index.ts'
import type { AgentDriver } from '../../driver.ts'
import { holder } from '../../kubeconfig-hub.ts'
import { configKey } from '../contract.ts'
import { grpcApi } from './api.ts'
import { configText, connectionFromConfig, hubFromConfig } from './config.ts'

export interface GrpcAgentOptions {
  /** How long certificates should last; the hub's signer decides if absent. */
  expirationSeconds?: number | undefined
  /** For the proxy settings. */
  env?: Environment | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
  log?: Logger | undefined
}

/** Everything through the hub's gRPC endpoint: certificates of its own signer, and events in place of requests to the API server. */
export const grpcAgentDriver = (options: GrpcAgentOptions = {}): AgentDriver => {
  const { env, clock = systemClock, random = Math.random, log = silentLogger } = options
  // The endpoint takes only names that begin with the cluster's, which may have 63 letters itself.
  const certificates = csrAgentDriver({ ...options, signerName: signer.grpc, longestName: 253 })
  const api = (connection: Connection, cluster: string, { userAgent }: ClientOptions): Api =>
    grpcApi({ connection, cluster, userAgent, clock, random, log })
  return {
    ...certificates,
    name: 'grpc',
    hubOf: (bootstrap, source) => hubFromConfig(bootstrap, source, env),
    asBootstrap: async (bootstrap, source, client, { cluster }) => {
      await hubFromConfig(bootstrap, source, env) // what is refused there must not be connected to here
      return api(await connectionFromConfig(bootstrap, source, { env, now: client.now }), cluster, client)
    },
    asCluster: (secret, hub, client) => {
      const credential = () => ({ cert: secret()[secretKey.certificate], key: secret()[secretKey.key] })
      return api(holder(credential, hub), secret()[secretKey.clusterName] ?? '', client)
    },
    beside: async (hub) => ({ [configKey]: await configText(hub) }),
  }
}
