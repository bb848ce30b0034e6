import { defineAddOn, inOwnNamespace, type AddOn } from '../addons/index.ts'
import { installOnAnnotation } from '../addons/hub/index.ts'
import { ClusterManagementAddOn } from '../api/index.ts'
import { isAlreadyExists, type Api } from '../kube/index.ts'
import type { Logger, Manager } from '../runtime/index.ts'
import { addOnName } from '../serviceaccounts/contract.ts'
import { agentRules, applyGuard, manifestsFor, startServiceAccounts } from '../serviceaccounts/hub/index.ts'

export interface ServiceAccountsAddOnOptions {
  client: Api
  /** Of the agent on managed clusters: this very program. */
  image: string
  /** Which clusters get it without a person: `*`, or labels as `key=value,key=value`; empty leaves that as it is. */
  installOn: string
  log: Logger
}

/** The add-on `managed-serviceaccount`: who its agent is, what it may do, and what is deployed. */
export const serviceAccountsAddOn = (image: string): AddOn =>
  defineAddOn({
    name: addOnName,
    registrations: [{ type: 'kubeClient' }],
    permissions: [inOwnNamespace(...agentRules)],
    // By its pods: no lease has to be renewed, and an agent that cannot reach the hub is not ready.
    health: 'workload',
    manifests: ({ cluster, addOn, installNamespace }) =>
      manifestsFor({ cluster: cluster.metadata.name!, namespace: installNamespace, image, addOn }),
  })

/**
 * Puts the add-on into a hub. Its agents may write Secrets only where the API server can check which: a hub whose API server has
 * no admission policies (before Kubernetes 1.30) does not offer it.
 */
export const hubServiceAccounts = async (
  manager: Manager,
  { client, image, installOn, log }: ServiceAccountsAddOnOptions,
  signal: AbortSignal,
): Promise<AddOn[]> => {
  if (!(await applyGuard(client, signal))) {
    log.error(
      'managed service accounts are off: this API server has no ValidatingAdmissionPolicy; use Kubernetes 1.30',
      {},
    )
    return []
  }
  if (installOn) await install(client, installOn, signal)
  startServiceAccounts(manager, { client, log })
  return [serviceAccountsAddOn(image)]
}

/** The rule is the operator's of the hub: it takes the place of what is there. */
const install = async (client: Api, installOn: string, signal: AbortSignal): Promise<void> => {
  const annotations = { [installOnAnnotation]: installOn }
  const catalogue = client.of(ClusterManagementAddOn)
  const spec = {
    addOnMeta: {
      displayName: 'Managed service accounts',
      description: 'Service accounts on managed clusters whose tokens the hub holds.',
    },
  }
  try {
    await catalogue.create({ metadata: { name: addOnName, annotations }, spec }, { signal })
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    await catalogue.patch(addOnName, { merge: { metadata: { annotations } } }, { signal })
  }
}
