import { createHash } from 'node:crypto'
import type { ManifestWork, PermissionSpec } from '../../api/index.ts'
import { apiVersionOf, type KubeObject, type LabelSelector, type Subject, type Unstructured } from '../../kube/index.ts'
import { claimAnnotation, perNamespace } from '../../work/contract.ts'
import {
  bindingsOf,
  hasSelector,
  isCopy,
  nameOfRef,
  placeOf,
  rbacGroup,
  type Binding,
  type Place,
} from '../bindings.ts'
import type { CopiedRole } from './hub-roles.ts'

type WorkSpec = ManifestWork['spec']
type ManifestConfig = NonNullable<WorkSpec['manifestConfigs']>[number]

/** What has to be known to say what one cluster gets. */
export interface Recipe {
  readonly kind: 'ClusterPermission' | 'ClusterSetPermission'
  readonly metadata: KubeObject['metadata']
  readonly spec: PermissionSpec
  readonly copies: readonly CopiedRole[]
  /** The namespace of a ManagedServiceAccount's account on the managed cluster; undefined when there is no such account. */
  readonly accountNamespace: (name: string) => string | undefined
}

export interface Payload {
  readonly spec: WorkSpec
  readonly bytes: number
}

/** The content of the ManifestWork of a permission for one cluster. */
export const payloadOf = (recipe: Recipe): Payload => {
  const { spec, metadata } = recipe
  const rbac = rbacObjects(recipe)
  const manifests = [
    ...rbac.filter(({ place }) => !hasSelector(place)).map(({ object }) => object),
    ...perSelector(metadata.name!, rbac),
  ]
  const { stubs, configs } = spec.validate ? looking(recipe) : { stubs: [], configs: [] }
  manifests.push(...stubs)
  const work: WorkSpec = { workload: { manifests }, ...(configs.length ? { manifestConfigs: configs } : {}) }
  return { spec: work, bytes: bytesOf(manifests) }
}

interface Placed {
  readonly object: Unstructured
  readonly place: Place
}

const rbacObjects = (recipe: Recipe): Placed[] => {
  const { kind, metadata, spec, copies } = recipe
  const name = metadata.name!
  const own = `${kind} ${metadata.namespace ? `${metadata.namespace}/` : ''}${name} ${metadata.uid}`
  const made = (of: string, as: string, place: Place, claim: string, fields: object): Placed => ({
    place,
    object: {
      apiVersion: `${rbacGroup}/v1`,
      kind: of,
      metadata: {
        name: as,
        ...(place !== 'cluster' && 'namespace' in place ? { namespace: place.namespace } : {}),
        annotations: { [claimAnnotation]: claim },
      },
      ...fields,
    },
  })
  const clusterRole = spec.clusterRole
    ? [made('ClusterRole', name, 'cluster', own, { rules: spec.clusterRole.rules })]
    : []
  const copied = copies.map(({ ref, rules }) =>
    // Two permissions may copy one role: both claim it for the hub's.
    made(
      ref.kind,
      ref.name,
      ref.kind === 'Role' ? { namespace: ref.namespace! } : 'cluster',
      `copy of ${nameOfRef(ref)}`,
      { rules },
    ),
  )
  const roles = (spec.roles ?? []).map((role) => made('Role', name, placeOf(role), own, { rules: role.rules }))
  const bindings = bindingsOf(name, spec).flatMap((binding) => {
    // Bound to a copy that is not there, it would give whatever the managed cluster has under that name.
    if (binding.source === 'copy' && !copies.some(({ ref }) => isCopy(ref, binding.role, binding.place))) return []
    const subjects = translated(binding, recipe)
    if (subjects.length === 0) return []
    const roleRef = { apiGroup: rbacGroup, ...binding.role }
    return [made(binding.kind, binding.name, binding.place, own, { roleRef, subjects })]
  })
  return [...clusterRole, ...copied, ...roles, ...bindings]
}

/** The subjects as the managed cluster knows them, without those that are not there. */
const translated = ({ subjects }: Binding, { accountNamespace }: Recipe): Subject[] =>
  subjects.flatMap((subject): Subject[] => {
    const { kind, name, namespace } = subject
    if (kind === 'ServiceAccount') return [{ kind, name, namespace }]
    if (kind !== 'ManagedServiceAccount') return [{ kind, apiGroup: rbacGroup, name }]
    const at = accountNamespace(name)
    return at === undefined ? [] : [{ kind: 'ServiceAccount', name, namespace: at }]
  })

/** One manifest for each selector; only the managed cluster knows which namespaces it means. */
const perSelector = (name: string, rbac: readonly Placed[]): Unstructured[] => {
  const groups = new Map<string, { namespaceSelector: LabelSelector; manifests: Unstructured[] }>()
  for (const { object, place } of rbac) {
    if (!hasSelector(place)) continue
    const { namespaceSelector } = place
    const key = JSON.stringify(namespaceSelector)
    const known = groups.get(key)
    if (known) known.manifests.push(object)
    else groups.set(key, { namespaceSelector, manifests: [object] })
  }
  return [...groups].map(([key, spec]) => ({
    apiVersion: apiVersionOf(perNamespace),
    kind: perNamespace.kind,
    metadata: { name: `${name}-${createHash('sha256').update(key).digest('hex').slice(0, 8)}` },
    spec,
  }))
}

/** Manifests that are only looked at: the roles that bindings name and the managed cluster should have. */
const looking = ({ metadata, spec }: Recipe): { stubs: Unstructured[]; configs: ManifestConfig[] } => {
  const named = bindingsOf(metadata.name!, spec).filter(({ source }) => source === 'managed')
  const placed = named.map(({ role, place }): Placed => {
    const at: Place = role.kind === 'ClusterRole' ? 'cluster' : place
    const namespace = at !== 'cluster' && 'namespace' in at ? { namespace: at.namespace } : {}
    return {
      place: at,
      object: { apiVersion: `${rbacGroup}/v1`, kind: role.kind, metadata: { name: role.name, ...namespace } },
    }
  })
  const distinct = [...new Map(placed.map((one) => [JSON.stringify(one), one])).values()]
  const plain = distinct.filter(({ place }) => !hasSelector(place)).map(({ object }) => object)
  const configs = distinct.map(({ object, place }): ManifestConfig => ({
    resourceIdentifier: {
      group: rbacGroup,
      resource: object.kind === 'Role' ? 'roles' : 'clusterroles',
      name: object.metadata.name!,
      namespace: hasSelector(place) ? '*' : (object.metadata.namespace ?? ''),
    },
    updateStrategy: { type: 'ReadOnly' },
    // The server would fill this in, and the work would look edited.
    feedbackScrapeType: 'Poll',
  }))
  return { stubs: [...plain, ...perSelector(`${metadata.name}-existing`, distinct)], configs }
}

const bytesOf = (manifests: readonly Unstructured[]): number =>
  manifests.reduce((sum, manifest) => sum + Buffer.byteLength(JSON.stringify(manifest)), 0)
