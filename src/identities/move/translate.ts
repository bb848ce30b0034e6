import { isDeepStrictEqual } from 'node:util'
import { annotation } from '../../api/index.ts'
import {
  apiVersionOf,
  type ObjectMeta,
  type OwnerReference,
  type Resource,
  type Unstructured,
} from '../../kube/index.ts'
import { equal } from '../../runtime/index.ts'
import { annotation as identityAnnotation, inUseFinalizer } from '../contract.ts'
import { isEverybody, type AllowedNamespaces } from '../permission.ts'
import type { Bundle, Item } from './bundle.ts'
import { isPausable, mark, markOf, pausesBySpec } from './marks.ts'

/** Where things go, as far as it changes what is written. */
export interface Destination {
  readonly controllerNamespace: string
  /** The uid there of what has this uid at the source; undefined when it does not go along. */
  readonly uidOf: (uid: string) => string | undefined
}

/** Annotations that say something about the object at the source only. */
const ofTheSource = new Set<string>([annotation.blockMove, annotation.deleteForMove, ...Object.values(mark)])

/** An object as it has to be on the target before anybody acts for it: paused, with the owners that it has there, without status. */
export const asOnTarget = (bundle: Bundle, item: Item, to: Destination): Unstructured => {
  const { resource, object } = item
  const { status: _status, metadata: _metadata, ...fields } = object
  const translated = {
    ...fields,
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: metadataOf(bundle, item, to),
  }
  if (pausesBySpec(resource)) return { ...translated, spec: { ...(object['spec'] as object), paused: true } }
  if (resource.kind === 'AWSClusterStaticIdentity' && item.fate === 'copy') return withSecret(translated, bundle, to)
  return translated
}

const metadataOf = (bundle: Bundle, { resource, object, fate }: Item, to: Destination): ObjectMeta => {
  const { name, namespace, uid, labels, annotations = {}, finalizers = [], ownerReferences = [] } = object.metadata
  // What was already free to go says so to the webhooks of the source, and only to them.
  const isFree = Object.hasOwn(annotations, annotation.deleteForMove)
  const kept = Object.fromEntries(
    Object.entries(annotations).filter(
      ([key]) => !ofTheSource.has(key) && !(isFree && key === identityAnnotation.deleteInUse),
    ),
  )
  const pause = isPausable(resource)
    ? { [mark.movingFrom]: bundle.origin, ...(pausesBySpec(resource) ? {} : { [annotation.paused]: 'true' }) }
    : {}
  // Whoever holds it there does so anew: a finalizer of a controller that has never seen it would stay for ever.
  const held = finalizers.filter((one) => one !== inUseFinalizer)
  const owners = ownerReferences.flatMap((owner): OwnerReference[] => {
    const uid = to.uidOf(owner.uid)
    return uid === undefined ? [] : [{ ...owner, uid }]
  })
  const copyOf = fate === 'move' && uid ? { [mark.copyOf]: uid } : {}
  const all = { ...kept, ...pause, ...copyOf }
  return {
    name,
    ...(namespace ? { namespace: fate === 'copy' ? mapped(namespace, bundle, to) : namespace } : {}),
    ...(labels ? { labels } : {}),
    ...(Object.keys(all).length > 0 ? { annotations: all } : {}),
    ...(held.length > 0 ? { finalizers: held } : {}),
    ...(owners.length > 0 ? { ownerReferences: owners } : {}),
  }
}

/**
 * Whether what is there was made by this move, and not by somebody before. Of what is paused other marks tell that it is coming. A
 * binding is the record of the controller of ClusterResourceSets: it begins one as soon as the set and the Cluster are there, but
 * what was applied is in the one that comes.
 */
export const isCopy = ({ resource, object }: Item, there: Unstructured): boolean =>
  isPausable(resource) ||
  resource.kind === 'ClusterResourceSetBinding' ||
  markOf(there, 'copyOf') === object.metadata.uid

/**
 * A copy as it has to be in place of what is there. Finalizers and owners that it has got there stay: its controllers put them there,
 * and would do so again. `isOurs` says of an owner's uid that it came along.
 */
export const asCopy = (
  wanted: Unstructured,
  { metadata: { finalizers = [], ownerReferences = [] } }: Unstructured,
  isOurs: (uid: string) => boolean,
): Unstructured => {
  const owners = wanted.metadata.ownerReferences ?? []
  const held = [...new Set([...finalizers, ...(wanted.metadata.finalizers ?? [])])]
  const kept = ownerReferences.flatMap(
    (one) => owners.find(({ uid }) => uid === one.uid) ?? (isOurs(one.uid) ? [] : one),
  )
  return { ...wanted, metadata: { ...wanted.metadata, finalizers: held, ownerReferences: withOwners(kept, owners) } }
}

/** These owners, and those that are not among them yet. */
export const withOwners = (present: readonly OwnerReference[], more: readonly OwnerReference[]): OwnerReference[] => [
  ...present,
  ...more.filter(({ uid }) => !present.some((one) => one.uid === uid)),
]

/** A Secret beside the controller goes beside the controller. */
const mapped = (namespace: string, bundle: Bundle, to: Pick<Destination, 'controllerNamespace'>): string =>
  namespace === bundle.controllerNamespace ? to.controllerNamespace : namespace

const withSecret = (identity: Unstructured, bundle: Bundle, to: Destination): Unstructured => {
  const spec = identity['spec'] as { secretRef?: string | { namespace: string; name: string } }
  const { secretRef } = spec
  if (typeof secretRef !== 'object' || secretRef === null) return identity // a plain name means the controller's namespace everywhere
  return {
    ...identity,
    spec: { ...spec, secretRef: { ...secretRef, namespace: mapped(secretRef.namespace, bundle, to) } },
  }
}

/** Where a difference is, in words that show no value of a Secret. */
export interface Difference {
  field: string
  source: string
  target: string
}

/** How an identity that is on the target already differs from the one that a cluster would bring. */
export const identityDifferences = (
  wanted: Unstructured,
  present: Unstructured,
  controllerNamespace: string,
): Difference[] => {
  const a = normal(wanted, controllerNamespace)
  const b = normal(present, controllerNamespace)
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].toSorted().flatMap((field): Difference[] => {
    if (isDeepStrictEqual(a[field], b[field]) || (field !== 'allowedNamespaces' && equal(a[field], b[field]))) return []
    // Known to two parties only, by intention.
    if (field === 'externalID') return [{ field: 'spec.externalID', source: '(one)', target: '(another)' }]
    return [{ field: `spec.${field}`, source: said(a[field]), target: said(b[field]) }]
  })
}

const normal = ({ spec }: Unstructured, controllerNamespace: string): Record<string, unknown> => {
  const { allowedNamespaces, secretRef, ...rest } = (spec ?? {}) as Record<string, unknown>
  const allowed = allowedNamespaces as AllowedNamespaces
  return {
    ...rest,
    // Absent lets nobody use it, and {} everybody: here empty and absent are opposites.
    ...(allowed ? { allowedNamespaces: isEverybody(allowed) ? {} : plain(allowed) } : {}),
    ...(secretRef
      ? { secretRef: typeof secretRef === 'string' ? { namespace: controllerNamespace, name: secretRef } : secretRef }
      : {}),
  }
}

const plain = ({ list, selector }: NonNullable<AllowedNamespaces>): object => ({
  ...(list?.length ? { list: list.toSorted() } : {}),
  ...(selector && Object.keys(selector).length > 0 ? { selector } : {}),
})

const said = (value: unknown): string => (value === undefined ? '(absent)' : JSON.stringify(value))

/** The Secrets that hold credentials of an identity, not those of a cluster. */
export const isCredential = ({
  resource,
  fate,
}: {
  resource: Pick<Resource, 'kind' | 'group'>
  fate: string
}): boolean => resource.kind === 'Secret' && resource.group === '' && fate === 'copy'
