import { ClusterManagementAddOn, label, ManagedClusterAddOn } from '../../api/index.ts'
import { credentialOfLabel } from '../../addons/contract.ts'
import { CertificateSigningRequest, decoded, Secret, ServiceAccount, type Client } from '../../kube/index.ts'
import type { SecretData } from '../../kube/index.ts'
import type { Seen } from './faults.ts'
import { orNone, patienceMs } from './look.ts'

/** The add-ons of a hub's clusters. */
export interface AddOnHubView {
  readonly addOns: Seen<readonly ManagedClusterAddOn[]>
  readonly catalogue: Seen<readonly ClusterManagementAddOn[]>
  /** Of add-ons only. */
  readonly requests: Seen<readonly CertificateSigningRequest[]>
  /** In the namespaces of clusters; of whom nothing more is known than names and labels. */
  readonly accounts: Seen<readonly ServiceAccount[]>
}

/** An add-on's credential on the managed cluster. */
export interface KeptCredential {
  readonly namespace: string
  readonly name: string
  readonly data: SecretData
}

type See = <T>(look: () => Promise<T>) => Promise<Seen<T>>

/** Looks at the add-ons of all clusters of a hub, or of one. */
export const gatherAddOns = async (
  client: Client,
  name: string | undefined,
  see: See,
  signal: AbortSignal,
): Promise<AddOnHubView> => {
  const call = { timeoutMs: patienceMs, signal }
  const ofAddOns = `${label.clusterName}${name ? `=${name}` : ''},${label.addOnName}`
  const [addOns, catalogue, requests, accounts] = await Promise.all([
    see(() => orNone(client.of(ManagedClusterAddOn, name).list(call))),
    see(() => orNone(client.of(ClusterManagementAddOn).list(call))),
    see(() => orNone(client.of(CertificateSigningRequest).list({ labelSelector: ofAddOns, ...call }))),
    see(() => orNone(client.of(ServiceAccount, name).list({ metadataOnly: true, ...call }))),
  ])
  return { addOns, catalogue, requests, accounts }
}

/** The credentials that agents keep for add-ons on a managed cluster. */
export const gatherCredentials = async (client: Client, signal: AbortSignal): Promise<KeptCredential[]> => {
  const { items } = await client.of(Secret).list({ labelSelector: credentialOfLabel, timeoutMs: patienceMs, signal })
  return items.map((secret) => ({
    namespace: secret.metadata.namespace!,
    name: secret.metadata.name!,
    data: decoded(secret)!,
  }))
}
