import { group, label } from '../../api/index.ts'
import type { KubeObject, Resource, Unstructured } from '../../kube/index.ts'
import { identityResources, type IdentityReference } from '../contract.ts'
import { idOfFound, type Found, type Item } from './bundle.ts'
import { isPausable, markOf } from './marks.ts'

/** Moves an object although nobody owns it, or on a CRD all objects of that kind; anything may be its value. */
export const moveLabel = 'clusterctl.cluster.x-k8s.io/move'

/** What Cluster API calls the Secrets of a cluster: `<cluster>-<purpose>`. Some of them are made by people and have no owner. */
const purposes = ['ca', 'etcd', 'sa', 'proxy', 'kubeconfig', 'apiserver-etcd-client', 'user-kubeconfig']

const isOf = ({ resource }: Found, kind: string, of: string = group.clusterApi): boolean =>
  resource.kind === kind && resource.group === of

/** Where hierarchies begin: with what people make. An AWSCluster can stand alone, before a Cluster takes it. */
const isRoot = (found: Found, isChosen: (kind: Resource) => boolean): boolean => {
  const labels = found.object.metadata.labels ?? {}
  // An earlier run was on its way with it, and may have taken away whoever named it.
  if (Object.hasOwn(labels, moveLabel) || markOf(found.object, 'movingTo') !== undefined) return true
  // An identity says so of itself for other tools, which move all there are. Here it goes along with whoever uses it.
  if (Object.hasOwn(labels, label.moveHierarchy) || isChosen(found.resource)) return !isIdentity(found.resource.kind)
  return (
    isOf(found, 'Cluster') ||
    isOf(found, 'ClusterClass') ||
    isOf(found, 'ClusterResourceSet', 'addons.cluster.x-k8s.io') ||
    (isOf(found, 'AWSCluster', group.infrastructure) && !ownedByCluster(found.object))
  )
}

const ownedByCluster = ({ metadata }: KubeObject): boolean =>
  metadata.ownerReferences?.some(
    ({ kind, apiVersion }) => kind === 'Cluster' && groupOf(apiVersion) === group.clusterApi,
  ) ?? false

/** The group of an apiVersion; that of the core is empty. */
export const groupOf = (apiVersion: string): string =>
  apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''

interface Reference {
  /** Undefined when the field that refers leaves it open. */
  group: string | undefined
  kind: string
  name: string
  namespace: string | undefined
}

/** Everything in a spec that looks like a reference: templates, bootstrap data, infrastructure, identities. */
export const referencesIn = (value: unknown): Reference[] => {
  if (Array.isArray(value)) return value.flatMap(referencesIn)
  if (typeof value !== 'object' || value === null) return []
  const { kind, name, namespace, apiVersion, apiGroup } = value as Record<string, unknown>
  const inner = Object.values(value).flatMap(referencesIn)
  if (typeof kind !== 'string' || typeof name !== 'string') return inner
  const of = typeof apiVersion === 'string' ? groupOf(apiVersion) : typeof apiGroup === 'string' ? apiGroup : undefined
  const at = typeof namespace === 'string' && namespace !== '' ? namespace : undefined
  return [{ group: of, kind, name, namespace: at }, ...inner]
}

/**
 * What of a namespace goes along, owners before what they own, and what belongs to no cluster and stays. Of a chosen kind, whose CRD has
 * a label that says so, everything goes.
 */
export const chooseNeeded = (
  all: readonly Found[],
  isChosen: (kind: Resource) => boolean = () => false,
): { items: Item[]; left: Found[] } => {
  const byUid = new Map(all.map((found) => [found.object.metadata.uid, found]))
  const byName = Map.groupBy(all, ({ resource, object }) => `${resource.kind}/${object.metadata.name}`)
  const owned = new Map<Found, Found[]>()
  const ownersOf = (found: Found): Found[] => [...hardOwners(found, byUid), ...softOwners(found, byName)]
  for (const found of all) for (const owner of ownersOf(found)) owned.set(owner, [...(owned.get(owner) ?? []), found])

  const needed = new Set(all.filter((found) => isRoot(found, isChosen)))
  for (const found of needed) {
    for (const dependant of owned.get(found) ?? []) needed.add(dependant)
    for (const reference of referencesIn(found.object['spec']))
      for (const target of byName.get(`${reference.kind}/${reference.name}`) ?? [])
        if (fits(reference, target)) needed.add(target)
  }
  const waves = new Map<Found, number>()
  const waveOf = (found: Found, above: readonly Found[] = []): number => {
    const known = waves.get(found)
    if (known !== undefined) return known
    const owners = ownersOf(found).filter((owner) => needed.has(owner) && owner !== found && !above.includes(owner))
    const wave = Math.max(-1, ...owners.map((owner) => waveOf(owner, [...above, found]))) + 1
    waves.set(found, wave)
    return wave
  }
  const items = [...needed].map((found): Item => {
    const isLoose = !isPausable(found.resource) && !ownersOf(found).some((owner) => needed.has(owner))
    return { ...found, fate: 'move', wave: waveOf(found), ...(isLoose ? { loose: true } : {}) }
  })
  return {
    items: items.toSorted((a, b) => a.wave - b.wave || (idOfFound(a) < idOfFound(b) ? -1 : 1)),
    left: all.filter((found) => !needed.has(found) && found.resource.group !== ''),
  }
}

const fits = (reference: Reference, { resource, object }: Found): boolean =>
  (reference.group === undefined || reference.group === resource.group) &&
  (reference.namespace === undefined || reference.namespace === object.metadata.namespace)

const hardOwners = ({ object }: Found, byUid: ReadonlyMap<string | undefined, Found>): Found[] =>
  (object.metadata.ownerReferences ?? []).flatMap(({ uid }) => byUid.get(uid) ?? [])

/** The ClusterClass of a Cluster: a name up to v1beta1, a reference from v1beta2, in neither with a kind. */
export const classOf = (found: Found): { name: string; namespace: string | undefined } | undefined => {
  if (!isOf(found, 'Cluster')) return undefined
  const { topology } = (found.object['spec'] ?? {}) as {
    topology?: { class?: string; classNamespace?: string; classRef?: { name?: string; namespace?: string } }
  }
  const name = topology?.classRef?.name ?? topology?.class
  return name ? { name, namespace: topology?.classRef?.namespace || topology?.classNamespace || undefined } : undefined
}

const softOwners = (found: Found, byName: ReadonlyMap<string, Found[]>): Found[] => {
  const { resource, object } = found
  const ofClass = classOf(found)
  // Webhooks ask for the class when a Cluster comes, and do not let it go while a Cluster names it.
  if (ofClass)
    return (byName.get(`ClusterClass/${ofClass.name}`) ?? []).filter(
      ({ object: { metadata } }) => (ofClass.namespace ?? metadata.namespace) === metadata.namespace,
    )
  if (object.metadata.ownerReferences?.length) return []
  const name = object.metadata.name!
  const clusterNamed = (cluster: string): Found[] =>
    (byName.get(`Cluster/${cluster}`) ?? []).filter((found) => isOf(found, 'Cluster'))
  if (resource.kind === 'ClusterResourceSetBinding') return clusterNamed(name)
  if (resource.kind !== 'Secret' || resource.group !== '') return []
  return purposes
    .filter((purpose) => name.endsWith(`-${purpose}`))
    .flatMap((purpose) => clusterNamed(name.slice(0, -purpose.length - 1)))
}

/** The identities that an object names, in its spec or among its owners. */
export const identitiesOf = ({ resource, object }: Found, unnamed: IdentityReference): IdentityReference[] => {
  const owners = (object.metadata.ownerReferences ?? [])
    .filter(({ apiVersion, kind }) => groupOf(apiVersion) === group.infrastructure && isIdentity(kind))
    .map(({ kind, name }) => ({ kind, name }))
  const named = (object as Unstructured & { spec?: { identityRef?: IdentityReference } }).spec?.identityRef
  if (named && isIdentity(named.kind)) return [{ kind: named.kind, name: named.name }, ...owners]
  return isAwsCluster(resource) ? [unnamed, ...owners] : owners
}

export const isAwsCluster = ({ kind, group: of }: Pick<Resource, 'group' | 'kind'>): boolean =>
  kind === 'AWSCluster' && of === group.infrastructure

const isIdentity = (kind: string): boolean => Object.hasOwn(identityResources, kind)
