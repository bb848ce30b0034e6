import { group } from '../../api/index.ts'
import { CustomResourceDefinition, type Api, type KubeObject } from '../../kube/index.ts'
import type { Informer } from '../../runtime/index.ts'
import { createdBy } from '../contract.ts'
import { hubCrds } from '../install/index.ts'
import { labelled } from '../set.ts'

interface Conversion {
  webhook?: { clientConfig?: { caBundle?: string } }
}

/** Whose CRDs may be there before us: installing ours over those of another infrastructure provider would break it. */
const mayBeOthers = (crd: CustomResourceDefinition): boolean => crd.spec.group === group.infrastructure

/** The CRDs to apply. The hub writes its CA bundle into them; it is kept. */
export const desiredCrds = async (
  client: Api,
  cache: Pick<Informer<CustomResourceDefinition>, 'get'>,
  owner: string,
  signal: AbortSignal,
): Promise<{ desired: KubeObject[]; others: string[] }> => {
  const others: string[] = []
  const desired: KubeObject[] = []
  const definitions = client.of(CustomResourceDefinition)
  for (const crd of hubCrds()) {
    const name = crd.metadata.name!
    const present = cache.get(name)
    const found = present ?? (mayBeOthers(crd) ? await definitions.find(name, { signal }) : undefined)
    if (found && found.metadata.labels?.[createdBy.clusterManager] === undefined) others.push(name)
    else desired.push(labelled(withBundle(crd, present), createdBy.clusterManager, owner))
  }
  return { desired, others }
}

const bundleIn = (crd: CustomResourceDefinition | undefined): string | undefined =>
  (crd?.spec.conversion as Conversion | undefined)?.webhook?.clientConfig?.caBundle

const withBundle = (
  crd: CustomResourceDefinition,
  present: CustomResourceDefinition | undefined,
): CustomResourceDefinition => {
  const caBundle = bundleIn(present)
  const conversion = crd.spec.conversion as Conversion | undefined
  if (!caBundle || !conversion?.webhook) return crd
  const clientConfig = { ...conversion.webhook.clientConfig, caBundle }
  return {
    ...crd,
    spec: { ...crd.spec, conversion: { ...conversion, webhook: { ...conversion.webhook, clientConfig } } },
  }
}
