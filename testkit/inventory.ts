import { servedResources } from '../src/kube/index.ts'
import type { ControlPlane } from './control-plane.ts'

/** What comes and goes by itself on any cluster, and is nobody's rest. */
const fleeting = new Set(['events.', 'events.events.k8s.io', 'componentstatuses.'])

/** Every object of a cluster, as `plural.group namespace/name`, sorted. */
export const inventory = async (plane: ControlPlane): Promise<string[]> => {
  const client = plane.client()
  const { resources, unreachable } = await servedResources(client)
  if (unreachable.length) throw new Error(`groups that do not answer: ${unreachable.join()}`)
  const listed = resources.filter(
    ({ plural, group, verbs }) => verbs.includes('list') && !fleeting.has(`${plural}.${group}`),
  )
  const lists = await Promise.all(
    listed.map(async (kind) => {
      const { items } = await client.of(kind).list({ metadataOnly: true })
      const of = kind.group ? `${kind.plural}.${kind.group}` : kind.plural
      return items.map(({ metadata: { namespace, name } }) => `${of} ${namespace ? `${namespace}/` : ''}${name}`)
    }),
  )
  return lists.flat().toSorted()
}
