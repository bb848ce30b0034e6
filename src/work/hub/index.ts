/** The hub's side of work delivery: what may be sent to a cluster, and as whom it may be executed there. */
export { webhookPath, workWebhookConfigurations, workWebhooks, type WorkWebhookOptions } from './webhooks.ts'
