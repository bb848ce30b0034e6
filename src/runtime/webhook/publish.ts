import { CustomResourceDefinition, isConflict, type Client, type KubeObject, type Resource } from '../../kube/index.ts'
import { silentLogger, type Logger } from '../log.ts'
import {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
  type WebhookClientConfig,
  type WebhookConfiguration,
} from './configurations.ts'

/** Which objects: by name, or by label. */
export type Which = { names: readonly string[] } | { labelSelector: string }

/** What `caBundlePublisher` needs. */
export interface PublishOptions {
  client: Client
  validating?: Which | undefined
  mutating?: Which | undefined
  /** Those that convert by webhook; the others are passed over. */
  definitions?: Which | undefined
  log?: Logger | undefined
}

/**
 * Writes a CA bundle to wherever the API server looks for it, and only where it differs. An object that is not there yet is
 * no error: it gets the bundle on a later call. An object that did not change since the last call is not even read.
 */
export const caBundlePublisher = (options: PublishOptions) => {
  const { client, validating, mutating, definitions, log = silentLogger } = options
  const publications = [
    ...(validating ? [publication(client, ValidatingWebhookConfiguration, validating, webhookConfigs)] : []),
    ...(mutating ? [publication(client, MutatingWebhookConfiguration, mutating, webhookConfigs)] : []),
    ...(definitions ? [publication(client, CustomResourceDefinition, definitions, conversionConfigs)] : []),
  ]
  /** Resolves to the objects that were changed, as `Kind name`. */
  return async (caBundle: string, signal?: AbortSignal): Promise<string[]> => {
    const changed = (await Promise.all(publications.map((publish) => publish(caBundle, signal)))).flat()
    if (changed.length > 0) log.info('webhook CA bundle published', { objects: changed })
    return changed
  }
}

const webhookConfigs = (object: WebhookConfiguration): WebhookClientConfig[] =>
  (object.webhooks ?? []).map((webhook) => webhook.clientConfig)

const conversionConfigs = ({ spec }: CustomResourceDefinition): WebhookClientConfig[] => {
  const conversion = spec.conversion as { webhook?: { clientConfig?: WebhookClientConfig } } | undefined
  return conversion?.webhook?.clientConfig ? [conversion.webhook.clientConfig] : []
}

const publication = <T extends KubeObject>(
  client: Client,
  of: Resource<T>,
  which: Which,
  configsOf: (object: T) => WebhookClientConfig[],
) => {
  const objects = client.of(of)
  // By name: the version that was seen to hold the bundle. CRDs are large, and a hub has dozens of them.
  const known = new Map<string, string>()
  let knownBundle = ''

  const publishTo = async (name: string, caBundle: string, signal: AbortSignal | undefined): Promise<boolean> => {
    const object = await objects.find(name, { signal })
    if (!object) return false
    const differing = configsOf(object).filter((config) => config.caBundle !== caBundle)
    for (const config of differing) config.caBundle = caBundle
    const stored = differing.length > 0 ? await objects.update(object, { signal }) : object
    known.set(name, stored.metadata.resourceVersion ?? '')
    return differing.length > 0
  }

  return async (pem: string, signal: AbortSignal | undefined): Promise<string[]> => {
    const caBundle = Buffer.from(pem).toString('base64')
    if (caBundle !== knownBundle) known.clear()
    knownBundle = caBundle
    const changed: string[] = []
    for (const selector of selectorsOf(which)) {
      const { items } = await objects.list({ ...selector, metadataOnly: true, signal })
      for (const { metadata } of items) {
        const name = metadata.name!
        if (known.get(name) === metadata.resourceVersion) continue
        const written = await overtaken(() => publishTo(name, caBundle, signal))
        if (written) changed.push(`${of.kind} ${name}`)
      }
    }
    return changed
  }
}

const selectorsOf = (which: Which): { labelSelector?: string; fieldSelector?: string }[] =>
  'names' in which ? which.names.map((name) => ({ fieldSelector: `metadata.name=${name}` })) : [which]

/** Again from the start when somebody else wrote in between. */
const overtaken = async (write: () => Promise<boolean>, attempts = 5): Promise<boolean> => {
  try {
    return await write()
  } catch (error) {
    if (!isConflict(error) || attempts <= 1) throw error
    return overtaken(write, attempts - 1)
  }
}
