/**
 * The hub's side of ManagedServiceAccounts. A tour:
 *
 * `controller.ts` handles one object from top to bottom, by where it is (`members.ts`): in a cluster's namespace the hub watches
 * over its token Secret for the agent, which can read none (`cluster-account.ts`, `drift.ts`); in a namespace that is bound to
 * cluster sets it is replicated to their clusters (`set-account.ts`). `proxy.ts` mirrors the group of the specification.
 * `guard.ts` are the admission rules by which the agent writes token Secrets and no others; `manifests.ts` is what is deployed.
 */
import type { Api } from '../../kube/index.ts'
import { silentLogger, systemClock, type Clock, type Logger, type Manager } from '../../runtime/index.ts'
import { serviceAccounts } from './controller.ts'
import { hubFor } from './hub.ts'
import { keepGuard } from './keep-guard.ts'
import { serviceAccountMetrics } from './metrics.ts'
import { proxyAccounts } from './proxy.ts'

export { applyGuard } from './guard.ts'
export { agentRules, localRules, manifestsFor, type ManifestOptions } from './manifests.ts'

export interface ServiceAccountsOptions {
  client: Api
  clock?: Clock | undefined
  log?: Logger | undefined
}

/** Adds what ManagedServiceAccounts need on a hub to the manager of the process. `applyGuard` comes first. */
export const startServiceAccounts = (manager: Manager, options: ServiceAccountsOptions): void => {
  const { client, clock = systemClock, log = silentLogger } = options
  const hub = hubFor(manager, { client, clock, log })
  for (const add of [keepGuard, serviceAccounts, proxyAccounts, serviceAccountMetrics]) add(hub)
}
