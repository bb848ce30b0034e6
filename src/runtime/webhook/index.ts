/**
 * Admission and conversion webhooks, with certificates that look after themselves.
 *
 *     const certificates = webhookCertificates({
 *       client, namespace, secretName: 'webhook-certificates', dnsNames: [`webhooks.${namespace}.svc`],
 *       publish: caBundlePublisher({ client, validating: { names: ['lanyard'] } }),
 *     })
 *     await certificates.ensure()
 *     const server = webhookServer({
 *       host: '::', port: 9443, certificate: certificates.current,
 *       routes: { '/validate-cluster': validating<ManagedCluster>(check), '/convert': converting({ 'group/Kind': convert }) },
 *     })
 *     certificates.onChange(server.reload)
 *     await server.start()
 *     await certificates.run(signal)        // renews, follows other replicas, tells the API server whom to trust
 *     await server.stop()
 *
 * A handler answers with data (`Denial`, warnings, the changed object); admission.ts has its contract, conversion.ts the other.
 * renewal.ts is the policy of certificates as a list of checks, rotation.ts what follows from it, step by step.
 */
export {
  mutating,
  validating,
  type AdmissionRequest,
  type AdmissionReview,
  type Mutate,
  type Mutation,
  type UserInfo,
  type Validate,
} from './admission.ts'
export type { AdmissionResponse, Cause, Denial, Warned } from './admission-response.ts'
export { webhookCertificates, WebhookCertificates, type WebhookCertificatesOptions } from './certificates.ts'
export {
  configurationsOf,
  guarding,
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
  webhookAt,
  type Webhook,
  type WebhookClientConfig,
  type WebhookConfiguration,
  type WebhookServerAddress,
} from './configurations.ts'
export { converting, type Conversions, type Convert } from './conversion.ts'
export type { Serving } from './held.ts'
export { jsonPatch, type PatchOperation } from './json-patch.ts'
export { caBundlePublisher, type PublishOptions, type Which } from './publish.ts'
export type { Context, Route } from './review.ts'
export { webhookServer, WebhookServer, type WebhookServerOptions } from './server.ts'
