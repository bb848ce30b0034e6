import { isNotFound, type Client, CustomResourceDefinition, type Condition } from '../kube/index.ts'
import { Deployment, whyNotAvailable } from './deployment.ts'

/** A Deployment as people ask about it. */
export interface RunningPart {
  name: string
  image: string
  replicas: number
  available: number
  problem?: string
}

/** The Deployments of some namespaces. */
export const partsIn = async (
  client: Client,
  namespaces: readonly string[],
  signal: AbortSignal,
): Promise<RunningPart[]> => {
  const lists = await Promise.all([...new Set(namespaces)].map((one) => client.of(Deployment, one).list({ signal })))
  return lists.flatMap(({ items }) =>
    items.map((deployment) => {
      const { metadata, spec, status } = deployment
      const problem = whyNotAvailable(deployment)
      return {
        name: `${metadata.namespace}/${metadata.name}`,
        image: spec.template.spec.containers[0]?.image ?? '',
        replicas: spec.replicas ?? 1,
        available: status?.availableReplicas ?? 0,
        ...(problem && { problem }),
      }
    }),
  )
}

/** CRDs of our groups with their versions; the one that is stored is marked. */
export const kindsIn = async (client: Client, signal: AbortSignal): Promise<Record<string, string>> => {
  const { items } = await client.of(CustomResourceDefinition).list({ signal })
  const ours = items.filter(({ metadata }) => metadata.name?.endsWith('.open-cluster-management.io'))
  return Object.fromEntries(
    ours.map(({ metadata, spec }) => {
      const { versions } = spec as { versions: { name: string; served: boolean; storage: boolean }[] }
      const shown = versions.filter(({ served }) => served).map(({ name, storage }) => (storage ? `*${name}` : name))
      return [metadata.name!, shown.join(' ')]
    }),
  )
}

/** One object, or undefined where its kind is not there either. */
export const optional = async <T>(found: Promise<T | undefined>): Promise<T | undefined> =>
  found.catch((error: unknown) => {
    if (isNotFound(error)) return undefined
    throw error
  })

/** Conditions as lines. */
export const conditionLines = (conditions: readonly Condition[] | undefined): string[] =>
  (conditions ?? []).map(({ type, status, message }) => `  ${type}: ${status}${message ? ` (${message})` : ''}`)

export const partLines = (parts: readonly RunningPart[]): string[] =>
  parts.map(
    ({ name, image, replicas, available, problem }) =>
      `  ${name}: ${image}, ${available} of ${replicas} available${problem ? ` (${problem})` : ''}`,
  )
