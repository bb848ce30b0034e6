import { CustomResourceDefinition, type Client } from '../kube/index.ts'

const isEstablished = (crd: CustomResourceDefinition): boolean =>
  crd.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True') ?? false

/** Puts CRDs on a cluster, in place of older ones, and returns when their kinds are served. */
export const installCrds = async (
  client: Client,
  crds: CustomResourceDefinition[],
  { fieldManager = 'lanyard', signal }: { fieldManager?: string; signal?: AbortSignal | undefined } = {},
): Promise<void> => {
  const definitions = client.of(CustomResourceDefinition)
  await Promise.all(crds.map((crd) => definitions.apply(crd, { fieldManager, force: true, signal })))
  const waiting = new Set(crds.map(({ metadata }) => metadata.name))
  // A watch without a resourceVersion begins with all that there is. It ends by itself: then look again.
  while (waiting.size > 0) {
    for await (const batch of await definitions.watch({ timeoutSeconds: 60, signal })) {
      for (const event of batch)
        if (event.type !== 'BOOKMARK' && isEstablished(event.object)) waiting.delete(event.object.metadata.name)
      if (waiting.size === 0) break
    }
  }
}
