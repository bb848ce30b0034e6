import { apiVersionOf, resource, type KubeObject, type LabelSelector } from '../../kube/index.ts'

/** How the API server reaches a webhook: by Service inside the cluster, by URL outside. */
export interface WebhookClientConfig {
  url?: string | undefined
  service?: { namespace: string; name: string; path?: string | undefined; port?: number | undefined } | undefined
  /** Base64 of PEM; see `caBundlePublisher`. */
  caBundle?: string | undefined
}

/** One webhook of a configuration. */
export interface Webhook {
  name: string
  clientConfig: WebhookClientConfig
  rules?: { operations: string[]; apiGroups: string[]; apiVersions: string[]; resources: string[]; scope?: string }[]
  /** Whether objects are refused while the webhook cannot be reached; `Fail` unless said otherwise. */
  failurePolicy?: 'Fail' | 'Ignore'
  matchPolicy?: 'Exact' | 'Equivalent'
  namespaceSelector?: LabelSelector
  objectSelector?: LabelSelector
  matchConditions?: { name: string; expression: string }[]
  /** At most 30; 10 unless said otherwise. */
  timeoutSeconds?: number
  sideEffects: 'None' | 'NoneOnDryRun'
  admissionReviewVersions: string[]
  /** Mutating webhooks only. */
  reinvocationPolicy?: 'Never' | 'IfNeeded'
}

/** Tells the API server which webhooks to ask about what. */
export interface WebhookConfiguration extends KubeObject {
  webhooks?: Webhook[]
}

const admission = { group: 'admissionregistration.k8s.io', version: 'v1', namespaced: false }
/** Webhooks that judge: they are asked after all that change objects. */
export const ValidatingWebhookConfiguration = resource<WebhookConfiguration>({
  ...admission,
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
})
/** Webhooks that change objects. */
export const MutatingWebhookConfiguration = resource<WebhookConfiguration>({
  ...admission,
  kind: 'MutatingWebhookConfiguration',
  plural: 'mutatingwebhookconfigurations',
})

/** The API server asks one webhook about creations and updates, and refuses them while it cannot: for what guards access. */
export const guarding = (
  where: WebhookServerAddress,
  of: { name: string; path: string; group: string; version: string; resources: string[] },
): Webhook => ({
  name: `${of.name}.${of.group}`,
  clientConfig: webhookAt(where, of.path),
  rules: [
    { operations: ['CREATE', 'UPDATE'], apiGroups: [of.group], apiVersions: [of.version], resources: of.resources },
  ],
  failurePolicy: 'Fail',
  matchPolicy: 'Equivalent',
  sideEffects: 'None',
  timeoutSeconds: 10,
  admissionReviewVersions: ['v1'],
})

/** The two objects that name the webhooks of one room to the API server. */
export const configurationsOf = (
  name: string,
  { mutating, validating }: { mutating: Webhook[]; validating: Webhook[] },
): WebhookConfiguration[] => [
  {
    apiVersion: apiVersionOf(MutatingWebhookConfiguration),
    kind: MutatingWebhookConfiguration.kind,
    metadata: { name },
    webhooks: mutating,
  },
  {
    apiVersion: apiVersionOf(ValidatingWebhookConfiguration),
    kind: ValidatingWebhookConfiguration.kind,
    metadata: { name },
    webhooks: validating,
  },
]

/** Where a webhook server is: the start of its URL, or its Service. */
export type WebhookServerAddress = { caBundle?: string | undefined } & (
  | { url: string }
  | { service: { namespace: string; name: string; port?: number | undefined } }
)

/** How the API server reaches one path of a webhook server. */
export const webhookAt = (where: WebhookServerAddress, path: string): WebhookClientConfig => ({
  ...('url' in where ? { url: `${where.url}${path}` } : { service: { ...where.service, path } }),
  ...(where.caBundle === undefined ? {} : { caBundle: where.caBundle }),
})
