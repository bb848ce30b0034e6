import { conditionType } from '../../api/index.ts'
import { isTrue } from '../../runtime/index.ts'
import type { Hub } from './hub.ts'

/** Counts accounts when somebody asks. */
export const serviceAccountMetrics = (hub: Hub): void => {
  const gauge = hub.manager.metrics.gauge(
    'lanyard_hub_managed_service_accounts',
    'ManagedServiceAccounts in the namespaces of clusters, by whether their token is reported',
  )
  const count = (reported: boolean): number =>
    hub.accounts
      .list()
      .filter(({ metadata }) => hub.clusters.get(metadata.namespace!))
      .filter((one) => isTrue(one, conditionType.managedServiceAccount.tokenReported) === reported).length
  for (const reported of [true, false]) gauge.read(() => count(reported), { reported: String(reported) })
}
