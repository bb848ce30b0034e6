import {
  Namespace,
  CustomResourceDefinition,
  clientFor,
  connectionFrom,
  decoded,
  keyOf,
  parseKubeconfig,
  type Client,
  type KubeObject,
  type Resource,
  type Secret,
} from '../../kube/index.ts'
import { applySet, stalled } from '../../runtime/index.ts'
import { createdBy, externalKubeconfigSecret } from '../contract.ts'
import { sharedObjects, sharedOwner } from './desired.ts'

/** Clusters that are managed from this one. Their clients are kept as long as their kubeconfigs do not change. */
export class RemoteClusters {
  readonly #clients = new Map<string, { version: string | undefined; client: Client }>()

  /** The cluster that a secret leads to. Throws what is wrong with the secret. */
  async of(klusterlet: string, secret: Secret | undefined): Promise<Client> {
    if (!secret)
      throw stalled('KubeconfigMissing', {
        message: `secret ${klusterlet}/${externalKubeconfigSecret} does not exist`,
        next: 'create it with the kubeconfig of the cluster that is to be managed, under the key kubeconfig',
      })
    const { resourceVersion: version } = secret.metadata
    const known = this.#clients.get(klusterlet)
    if (known?.version === version && known) return known.client
    known?.client.close()
    this.#clients.delete(klusterlet)
    const source = `secret ${klusterlet}/${externalKubeconfigSecret}`
    const kubeconfig = await parseKubeconfig(decoded(secret)?.['kubeconfig'] ?? '', { source })
    const client = clientFor(connectionFrom(kubeconfig), { userAgent: 'lanyard-operator' })
    this.#clients.set(klusterlet, { version, client })
    return client
  }

  forget(klusterlet: string): void {
    this.#clients.get(klusterlet)?.client.close()
    this.#clients.delete(klusterlet)
  }
}

const kinds: Resource<KubeObject>[] = [Namespace, CustomResourceDefinition]
const resourceOf = (object: KubeObject): Resource<KubeObject> => kinds.find(({ kind }) => kind === object.kind)!

/** Brings what every managed cluster has to one that is managed from here. It is not watched: each call asks. */
export const applyRemotely = async (client: Client, signal: AbortSignal): Promise<void> => {
  const desired = sharedObjects()
  const found = await Promise.all(
    desired.map((object) => client.of(resourceOf(object)).find(object.metadata.name!, { signal })),
  )
  const present = new Map(
    found.flatMap((object, i) => (object ? [[`${desired[i]!.kind} ${keyOf(object)}`, object] as const] : [])),
  )
  const targets = kinds.map((resource) => ({
    resource,
    cache: { get: (key: string) => present.get(`${resource.kind} ${key}`) },
  }))
  await applySet(desired, { client, targets, fieldManager: 'lanyard-operator', signal })
}

/** Takes that away again; answers with what is still there. */
export const removeRemotely = async (client: Client, signal: AbortSignal): Promise<string[]> => {
  const labelSelector = `${createdBy.klusterlet}=${sharedOwner}`
  const left: string[] = []
  for (const resource of kinds) {
    const { items } = await client.of(resource).list({ labelSelector, metadataOnly: true, signal })
    for (const { metadata } of items) {
      left.push(`${resource.kind} ${metadata.name}`)
      if (!metadata.deletionTimestamp)
        await client.of(resource).delete(metadata.name!, { preconditions: { uid: metadata.uid }, signal })
    }
  }
  return left
}
