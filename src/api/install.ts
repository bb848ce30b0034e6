import { isDeepStrictEqual } from 'node:util'
import { setTimeout as pause } from 'node:timers/promises'
import { CustomResourceDefinition, KindMapper, type Client } from '../kube/index.ts'

const isEstablished = (crd: CustomResourceDefinition): boolean =>
  crd.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True') ?? false

/** Exactly as it should be, but for what the API server fills in. A field that an older version had is a difference too. */
const isAsWanted = (wanted: CustomResourceDefinition, there: CustomResourceDefinition): boolean => {
  const holds = (has: Record<string, string> = {}, wants: Record<string, string> = {}): boolean =>
    Object.entries(wants).every(([key, value]) => has[key] === value)
  return (
    isDeepStrictEqual(there.spec, { conversion: { strategy: 'None' }, ...wanted.spec }) &&
    holds(there.metadata.labels, wanted.metadata.labels) &&
    holds(there.metadata.annotations, wanted.metadata.annotations)
  )
}

/**
 * Puts CRDs on a cluster, in place of older ones, and returns when their kinds are served. Those that are there are read and not
 * written: a write that changes nothing costs the API server five times as much, and every hub and agent begins with this.
 */
export const installCrds = async (
  client: Client,
  crds: CustomResourceDefinition[],
  { fieldManager = 'lanyard', signal }: { fieldManager?: string; signal?: AbortSignal | undefined } = {},
): Promise<void> => {
  const definitions = client.of(CustomResourceDefinition)
  const waiting = new Set<string | undefined>()
  await Promise.all(
    crds.map(async (crd) => {
      const there = await definitions.find(crd.metadata.name!, { signal })
      if (there && isEstablished(there) && isAsWanted(crd, there)) return
      waiting.add(crd.metadata.name)
      await definitions.apply(crd, { fieldManager, force: true, signal })
    }),
  )
  // A watch without a resourceVersion begins with all that there is. It ends by itself: then look again.
  while (waiting.size > 0) {
    for await (const batch of await definitions.watch({ timeoutSeconds: 60, signal })) {
      for (const event of batch)
        if (event.type !== 'BOOKMARK' && isEstablished(event.object)) waiting.delete(event.object.metadata.name)
      if (waiting.size === 0) break
    }
  }
  await untilServed(client, crds, signal)
}

const lookAgainMs = 50

/** Discovery shows a kind a moment after its definition says that it is established, and there people look for it. */
const untilServed = async (
  client: Client,
  crds: readonly CustomResourceDefinition[],
  signal: AbortSignal | undefined,
): Promise<void> => {
  const wanted = crds.flatMap(({ spec: { group, names, versions } }) =>
    versions.filter(({ served }) => served).map(({ name }) => ({ apiVersion: `${group}/${name}`, kind: names.kind })),
  )
  await Promise.all(
    [...Map.groupBy(wanted, ({ apiVersion }) => apiVersion)].map(async ([apiVersion, kinds]) => {
      for (;;) {
        const served = new Set((await new KindMapper(client).served(apiVersion, { signal })).map(({ kind }) => kind))
        if (kinds.every(({ kind }) => served.has(kind))) return
        await pause(lookAgainMs, undefined, { signal })
      }
    }),
  )
}
