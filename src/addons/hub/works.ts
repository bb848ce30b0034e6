import { label, ManagedClusterAddOn, ManifestWork } from '../../api/index.ts'
import { apiVersionOf, type KubeObject } from '../../kube/index.ts'
import { applySet, ownerReference, stalled } from '../../runtime/index.ts'
import { WorkApplied } from '../../work/contract.ts'
import { AddOnManifestApplied, workName } from '../contract.ts'
import type { AddOn, Manifest } from './definition.ts'
import { fieldManager, index, targetsOf, type AddOnHub } from './hub.ts'

type WorkSpec = ManifestWork['spec']
type ManifestConfigs = NonNullable<WorkSpec['manifestConfigs']>

/** On manifests that stay on the managed cluster when the add-on goes. */
export const orphanAnnotation = 'addon.open-cluster-management.io/deletion-orphan'

/** A work may hold 500 KiB; the rest is for what the API server and webhooks add. */
const fullAt = 400 * 1024

/** The manifests in as few works as they fit into, in their order. */
export const inWorks = (manifests: readonly Manifest[]): Manifest[][] => {
  const works: Manifest[][] = []
  let size = 0
  for (const manifest of manifests) {
    const bytes = Buffer.byteLength(JSON.stringify(manifest))
    const last = works.at(-1)
    if (last && size + bytes <= fullAt) {
      last.push(manifest)
      size += bytes
    } else {
      works.push([manifest])
      size = bytes
    }
  }
  return works
}

const workloads: Readonly<Record<string, string>> = { Deployment: 'deployments', DaemonSet: 'daemonsets', Job: 'jobs' }

/** Asks the agent for the well-known values of workloads: health and hooks are judged by them. */
const feedbackFor = (manifests: readonly Manifest[], given: ManifestConfigs): ManifestConfigs => {
  const asked = manifests.flatMap(({ apiVersion = '', kind = '', metadata: { name, namespace } }) => {
    const resource = workloads[kind]
    if (!resource || !name) return []
    const [group] = apiVersion.includes('/') ? apiVersion.split('/') : ['']
    const known = given.some(
      ({ resourceIdentifier: r }) =>
        r.resource === resource && r.name === name && (r.namespace ?? '') === (namespace ?? ''),
    )
    if (known) return []
    return [
      {
        resourceIdentifier: { group: group!, resource, name, ...(namespace ? { namespace } : {}) },
        feedbackRules: [{ type: 'WellKnownStatus' as const }],
      },
    ]
  })
  return [...given, ...asked]
}

const orphansOf = (manifests: readonly Manifest[], resourceOf: (kind: string) => string) =>
  manifests
    .filter(({ metadata }) => metadata.annotations && orphanAnnotation in metadata.annotations)
    .map(({ apiVersion = '', kind = '', metadata: { name = '', namespace } }) => ({
      group: apiVersion.includes('/') ? apiVersion.split('/')[0]! : '',
      resource: resourceOf(kind),
      name,
      ...(namespace ? { namespace } : {}),
    }))

// As Kubernetes names the kinds that it has itself; good for nearly all others, too.
const pluralOf = (kind: string): string => {
  const word = kind.toLowerCase()
  if (/(s|x|ch)$/.test(word)) return `${word}es`
  return /[^aeiou]y$/.test(word) ? `${word.slice(0, -1)}ies` : `${word}s`
}

const workSpec = (definition: AddOn, manifests: readonly Manifest[]): WorkSpec => {
  const orphaningRules = orphansOf(manifests, pluralOf)
  const { deleteOption, executor } = definition.work ?? {}
  return {
    workload: { manifests: manifests as Manifest[] },
    manifestConfigs: feedbackFor(manifests, definition.manifestConfigs ?? []),
    ...(deleteOption && { deleteOption }),
    ...(!deleteOption && orphaningRules.length > 0
      ? { deleteOption: { propagationPolicy: 'SelectivelyOrphan' as const, selectivelyOrphans: { orphaningRules } } }
      : {}),
    ...(executor && { executor }),
  }
}

/** A work of an add-on. The garbage collector removes it with the add-on, also when nobody else is there. */
export const workFor = (
  addOn: ManagedClusterAddOn,
  definition: AddOn,
  name: string,
  manifests: readonly Manifest[],
): ManifestWork => ({
  apiVersion: apiVersionOf(ManifestWork),
  kind: ManifestWork.kind,
  metadata: {
    name,
    namespace: addOn.metadata.namespace,
    labels: { [label.addOnName]: addOn.metadata.name! },
    ownerReferences: [ownerReference(addOn, ManagedClusterAddOn)],
  },
  spec: workSpec(definition, manifests),
})

const isDeployWork = (addOn: string, { metadata }: KubeObject): boolean =>
  metadata.name?.startsWith(workName.deploy(addOn, 0).slice(0, -1)) ?? false

/** The works that deploy an add-on, as the cache shows them. */
export const deployWorks = (hub: AddOnHub, addOn: ManagedClusterAddOn): ManifestWork[] =>
  hub.works
    .by(index.addOn, `${addOn.metadata.namespace}/${addOn.metadata.name}`)
    .filter((work) => isDeployWork(addOn.metadata.name!, work))
    .toSorted((a, b) => (a.metadata.name! < b.metadata.name! ? -1 : 1))

const typed = (work: ManifestWork): KubeObject => ({
  ...work,
  apiVersion: apiVersionOf(ManifestWork),
  kind: ManifestWork.kind,
})

/** Puts the manifests into works, and removes works that are not needed any more. Whether anything had to be sent. */
export const applyWorks = async (
  hub: AddOnHub,
  addOn: ManagedClusterAddOn,
  definition: AddOn,
  manifests: readonly Manifest[],
  signal: AbortSignal,
): Promise<boolean> => {
  const { name = '' } = addOn.metadata
  const unnamed = manifests.find(({ apiVersion, kind, metadata }) => !apiVersion || !kind || !metadata?.name)
  if (unnamed)
    throw stalled('InvalidManifest', {
      message: `add-on ${name}: a manifest has no apiVersion, kind or metadata.name (${unnamed.kind ?? 'no kind'} ${unnamed.metadata?.name ?? ''})`,
      next: 'mend the manifests of the add-on',
    })
  const desired = inWorks(manifests).map((part, i) => workFor(addOn, definition, workName.deploy(name, i), part))
  const present = deployWorks(hub, addOn)
  const changes = await applySet(desired, {
    client: hub.client,
    targets: targetsOf(hub),
    fieldManager,
    obsolete: present.map(typed),
    signal,
  })
  return changes.size > 0
}

/** Removes all works of an add-on that is gone. */
export const removeWorks = async (hub: AddOnHub, key: string, signal: AbortSignal): Promise<void> => {
  const addOn = key.slice(key.indexOf('/') + 1)
  const named = (work: ManifestWork): boolean =>
    isDeployWork(addOn, work) || work.metadata.name === workName.preDelete(addOn)
  const obsolete = hub.works.by(index.addOn, key).filter(named).map(typed)
  if (obsolete.length > 0)
    await applySet([], { client: hub.client, targets: targetsOf(hub), fieldManager, obsolete, signal })
}

/** How far the works have come: all on the managed cluster, on their way, or refused there. */
export type Delivery = { state: 'applied' | 'waiting' } | { state: 'failed'; message: string }

/** Reads it off the works, as many as there should be. */
export const deliveryOf = (works: readonly ManifestWork[], expected: number): Delivery => {
  const failed = works.filter((work) => appliedStatus(work) === 'False')
  if (failed.length > 0) return { state: 'failed', message: failed.map(failureOf).join('; ') }
  const applied = works.filter((work) => appliedStatus(work) === 'True').length
  return { state: works.length === expected && applied === expected ? 'applied' : 'waiting' }
}

/** What the agent says of the work as it is now; nothing about an older generation. */
const appliedStatus = ({ metadata, status }: ManifestWork): string | undefined => {
  const found = status?.conditions?.find(({ type }) => type === WorkApplied.type)
  return found && (found.observedGeneration ?? metadata.generation) === metadata.generation ? found.status : undefined
}

const failureOf = ({ metadata, status }: ManifestWork): string => {
  const wrong = (status?.resourceStatus?.manifests ?? []).flatMap(({ resourceMeta, conditions }) => {
    const bad = conditions?.find(({ type, status: is }) => type === 'Applied' && is === 'False')
    const { kind, namespace, name } = resourceMeta
    return bad ? [`${kind} ${namespace ? `${namespace}/` : ''}${name}: ${bad.message}`] : []
  })
  const more = wrong.length > 3 ? ` and ${wrong.length - 3} more` : ''
  return `ManifestWork ${metadata.name} failed on the managed cluster: ${wrong.slice(0, 3).join('; ')}${more}${hint(wrong)}`
}

const hint = (wrong: readonly string[]): string =>
  wrong.some((text) => /namespaces? .* not found/i.test(text))
    ? '; create the namespace there, or add a Namespace to the manifests of the add-on'
    : ''

/** The condition for a delivery. */
export const manifestApplied = (delivery: Delivery, count: number) => {
  if (delivery.state === 'failed') return AddOnManifestApplied.failed(delivery.message)
  if (delivery.state === 'applied')
    return AddOnManifestApplied.applied(count === 0 ? 'the add-on has no manifests' : 'the manifests are applied')
  return AddOnManifestApplied.waiting('the agent of the managed cluster has not applied the manifests yet')
}
