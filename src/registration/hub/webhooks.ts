import { group, type ManagedCluster, type ManagedClusterSetBinding } from '../../api/index.ts'
import { apiVersionOf } from '../../kube/index.ts'
import { systemClock, type Clock } from '../../runtime/index.ts'
import {
  mutating,
  MutatingWebhookConfiguration,
  validating,
  ValidatingWebhookConfiguration,
  webhookAt,
  type Route,
  type Validate,
  type Webhook,
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
  const webhook = (name: string, path: string, version: string, resources: string[]): Webhook => ({
    name: `${name}.${group.cluster}`,
    clientConfig: webhookAt(where, path),
    rules: [{ operations: ['CREATE', 'UPDATE'], apiGroups: [group.cluster], apiVersions: [version], resources }],
    // Without the webhook anybody who may update a cluster could accept it.
    failurePolicy: 'Fail',
    matchPolicy: 'Equivalent',
    sideEffects: 'None',
    timeoutSeconds: 10,
    admissionReviewVersions: ['v1'],
  })
  const metadata = { name: 'lanyard-registration' }
  return [
    {
      apiVersion: apiVersionOf(MutatingWebhookConfiguration),
      kind: MutatingWebhookConfiguration.kind,
      metadata,
      webhooks: [webhook('managedclusters.default', webhookPath.mutateCluster, 'v1', ['managedclusters'])],
    },
    {
      apiVersion: apiVersionOf(ValidatingWebhookConfiguration),
      kind: ValidatingWebhookConfiguration.kind,
      metadata,
      webhooks: [
        webhook('managedclusters.validate', webhookPath.validateCluster, 'v1', ['managedclusters']),
        webhook('managedclustersetbindings.validate', webhookPath.validateBinding, 'v1beta2', [
          'managedclustersetbindings',
        ]),
      ],
    },
  ]
}
