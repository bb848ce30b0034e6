import type { Client } from '../../kube/index.ts'
import { Metrics, silentLogger, systemClock, type Clock, type Logger } from '../../runtime/index.ts'
import { secretName } from '../contract.ts'
import type { AgentDriver } from '../drivers/driver.ts'
import type { ClaimRules } from './claims.ts'
import type { JoinedPart } from './parts.ts'

/** What an agent needs to know. Everything but the first three has a default. */
export interface AgentOptions {
  /** The managed cluster. */
  local: Client
  /** Where the agent runs and has its secrets; the managed cluster, unless it runs in another one for it. */
  home?: Client | undefined
  /** The agent's own namespace there, with its secrets. */
  namespace: string
  driver: AgentDriver
  clusterName?: string | undefined
  agentName?: string | undefined
  /** Several are several hubs, in order of preference. */
  bootstrapSecrets?: readonly string[] | undefined
  hubSecret?: string | undefined
  /** How the hub can reach this cluster; `caBundle` is base64. */
  clientConfigs?: readonly { url: string; caBundle?: string | undefined }[] | undefined
  /** For the ManagedCluster; only those of agent.open-cluster-management.io are taken. */
  clusterAnnotations?: Readonly<Record<string, string>> | undefined
  healthCheckPeriodMs?: number | undefined
  /** How long a hub may be silent before the agent goes to another, if there is one. */
  hubConnectionTimeoutMs?: number | undefined
  /** How long 401 may be a mistake before the agent gets a new credential. */
  refusalMs?: number | undefined
  maxCustomClaims?: number | undefined
  reservedClaimSuffixes?: readonly string[] | undefined
  /** What else runs while the cluster is joined: work delivery, add-ons. */
  parts?: readonly JoinedPart[] | undefined
  userAgent?: string | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
  log?: Logger | undefined
  metrics?: Metrics | undefined
}

/** The options with every default in its place. */
export interface Settings {
  readonly local: Client
  readonly home: Client
  readonly namespace: string
  readonly driver: AgentDriver
  readonly clusterName: string | undefined
  readonly agentName: string | undefined
  readonly bootstrapSecrets: readonly string[]
  readonly hubSecret: string
  readonly clientConfigs: readonly { url: string; caBundle?: string | undefined }[]
  readonly clusterAnnotations: Readonly<Record<string, string>>
  readonly healthCheckPeriodMs: number
  readonly hubConnectionTimeoutMs: number
  readonly refusalMs: number
  readonly claimRules: ClaimRules
  readonly parts: readonly JoinedPart[]
  readonly userAgent: string
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
  readonly metrics: Metrics
}

export const settingsOf = (options: AgentOptions): Settings => ({
  local: options.local,
  home: options.home ?? options.local,
  namespace: options.namespace,
  driver: options.driver,
  clusterName: options.clusterName,
  agentName: options.agentName,
  bootstrapSecrets: options.bootstrapSecrets?.length ? options.bootstrapSecrets : [secretName.bootstrap],
  hubSecret: options.hubSecret ?? secretName.hub,
  clientConfigs: options.clientConfigs ?? [],
  clusterAnnotations: options.clusterAnnotations ?? {},
  healthCheckPeriodMs: options.healthCheckPeriodMs ?? 60_000,
  hubConnectionTimeoutMs: options.hubConnectionTimeoutMs ?? 600_000,
  refusalMs: options.refusalMs ?? 30_000,
  claimRules: { maxCustom: options.maxCustomClaims ?? 20, reservedSuffixes: options.reservedClaimSuffixes ?? [] },
  parts: options.parts ?? [],
  userAgent: options.userAgent ?? 'lanyard-agent',
  clock: options.clock ?? systemClock,
  random: options.random ?? Math.random,
  log: options.log ?? silentLogger,
  metrics: options.metrics ?? new Metrics(),
})
