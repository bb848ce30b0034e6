import { group, type ManagedCluster, type ManagedClusterSetBinding } from '../../api/index.ts'
import { systemClock, type Clock } from '../../runtime/index.ts'
import {
  configurationsOf,
  guarding,
  mutating,
  validating,
  type Route,
  type Validate,
  type WebhookConfiguration,
  type WebhookServerAddress,
} from '../../runtime/webhook/index.ts'
import { rightDenial, setAccess, validateCluster, type AdmissionOptions } from './cluster-admission.ts'
import { defaultCluster } from './cluster-defaults.ts'

/** Where the webhooks are on their server; as the field has them. */
export const webhookPath = {
  mutateCluster: '/mutate-cluster-open-cluster-management-io-v1-managedcluster',
  validateCluster: '/validate-cluster-open-cluster-management-io-v1-managedcluster',
  validateBinding: '/validate-cluster-open-cluster-management-io-v1beta2-managedclustersetbinding',
} as const

export interface RegistrationWebhookOptions extends AdmissionOptions {
  clock?: Clock | undefined
}

/** Routes for a webhook server: who may write what into clusters and bindings of cluster sets. */
export const registrationWebhooks = (options: RegistrationWebhookOptions): Record<string, Route> => {
  const clock = options.clock ?? systemClock
  return {
    [webhookPath.mutateCluster]: mutating<ManagedCluster>(
      defaultCluster({ gates: options.gates, now: () => clock.now() }),
    ),
    [webhookPath.validateCluster]: validating<ManagedCluster>(validateCluster(options)),
    [webhookPath.validateBinding]: validating<ManagedClusterSetBinding>(validateBinding(options)),
  }
}

/** A binding lets everybody in its namespace use the set, so that whoever makes it needs a right on the set itself. */
const validateBinding =
  ({ client }: AdmissionOptions): Validate<ManagedClusterSetBinding> =>
  ({ object: binding, oldObject: old, userInfo }, { signal }) => {
    const set = binding?.spec.clusterSet
    if (set === undefined || set === old?.spec.clusterSet) return undefined
    const deed = `bind set ${set} to namespace ${binding?.metadata.namespace}`
    return rightDenial(client, userInfo, deed, setAccess('bind', set), signal)
  }

/** What tells the API server to ask us. Apply these when the server that is named answers: they refuse all writes before. */
export const registrationWebhookConfigurations = (where: WebhookServerAddress): WebhookConfiguration[] => {
  // Without these anybody who may update a cluster could accept it, and anybody who may bind a set could use it.
  const clusters = { group: group.cluster, version: 'v1', resources: ['managedclusters'] }
  const bindings = { group: group.cluster, version: 'v1beta2', resources: ['managedclustersetbindings'] }
  const { mutateCluster, validateCluster, validateBinding } = webhookPath
  return configurationsOf('lanyard-registration', {
    mutating: [guarding(where, { name: 'managedclusters.default', path: mutateCluster, ...clusters })],
    validating: [
      guarding(where, { name: 'managedclusters.validate', path: validateCluster, ...clusters }),
      guarding(where, { name: 'managedclustersetbindings.validate', path: validateBinding, ...bindings }),
    ],
  })
}
