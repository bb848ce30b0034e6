import { label } from '../../api/index.ts'
import { isNotFound, servedResources, type KubeObject, type Resource } from '../../kube/index.ts'
import { inParallel } from '../../runtime/index.ts'
import { leaseName } from '../contract.ts'
import type { Hub } from './hub.ts'

/** One object that was found, without its body. */
export interface Found {
  resource: Pick<Resource<KubeObject>, 'group' | 'kind'>
  object: KubeObject
}

type Makes = (found: Found & { namespace: string }) => boolean

/** Who else makes objects in a namespace. What none of them made is a person's. */
const notAPerson: readonly Makes[] = [
  // It is on its way out, whoever made it.
  ({ object }) => object.metadata.deletionTimestamp !== undefined,
  // The garbage collector removes it with its owner; if the owner is here, it counts for itself.
  ({ object }) => (object.metadata.ownerReferences?.length ?? 0) > 0,
  ({ resource }) => resource.kind === 'Event',
  ({ resource, object }) => is(resource, '', 'ServiceAccount') && systemAccounts.has(object.metadata.name!),
  ({ resource, object }) => is(resource, '', 'ConfigMap') && systemConfigMaps.has(object.metadata.name!),
  ({ resource, object }) =>
    is(resource, '', 'Secret') &&
    systemAccounts.has(object.metadata.annotations?.['kubernetes.io/service-account.name'] ?? ''),
  ({ resource, object }) => is(resource, rbacGroup, 'RoleBinding') && object.metadata.name!.startsWith('system:'),
  ({ resource, object }) => is(resource, 'coordination.k8s.io', 'Lease') && object.metadata.name === leaseName,
  // The hub's own: RBAC for the cluster, for its add-ons, and accounts for add-ons that use tokens.
  ({ resource, object, namespace }) =>
    (resource.group === rbacGroup || is(resource, '', 'ServiceAccount')) &&
    (object.metadata.labels?.[label.clusterName] === namespace ||
      object.metadata.labels?.[label.tokenInfrastructure] === 'true'),
]

const rbacGroup = 'rbac.authorization.k8s.io'
/** Kubernetes makes the first, OpenShift the others. */
const systemAccounts = new Set(['default', 'builder', 'deployer'])
const systemConfigMaps = new Set(['kube-root-ca.crt', 'openshift-service-ca.crt'])
const is = (resource: Found['resource'], group: string, kind: string): boolean =>
  resource.group === group && resource.kind === kind

/** Whether an object in a cluster's namespace is one that a person made, or a tool for a person. */
export const isPersons = (found: Found, namespace: string): boolean =>
  !notAPerson.some((makes) => makes({ ...found, namespace }))

/**
 * What people made in a namespace, as `Kind name`, in order. It asks the server for every kind there is, because a namespace
 * takes everything with it: this is for the moment before it is deleted or taken.
 */
export const leftIn = async (hub: Pick<Hub, 'client'>, namespace: string, signal: AbortSignal): Promise<string[]> => {
  const { resources, unreachable } = await servedResources(hub.client, { signal })
  const left = unreachable.map((group) => `possibly objects of API group ${group}, which does not answer`)
  const kinds = resources.filter((r) => r.namespaced && r.verbs.includes('list') && r.verbs.includes('delete'))
  await inParallel(
    8,
    kinds.map((resource) => async () => {
      const objects = hub.client.of(resource, namespace)
      const { items } = await objects.list({ metadataOnly: true, signal }).catch((error: unknown) => {
        // Its CRD went away in between.
        if (isNotFound(error)) return { items: [] }
        throw error
      })
      const persons = items.filter((object) => isPersons({ resource, object }, namespace))
      for (const { metadata } of persons) left.push(`${resource.kind} ${metadata.name}`)
    }),
  )
  return left.toSorted()
}

const mostNamed = 10

/** The first few by name, and how many more. */
export const summary = (things: readonly string[]): string => {
  const named = things.slice(0, mostNamed).join(', ')
  return things.length > mostNamed ? `${named} and ${things.length - mostNamed} more` : named
}
