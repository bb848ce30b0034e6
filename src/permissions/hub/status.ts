import type { ClusterPermission, ManifestWork } from '../../api/index.ts'
import { conditionType } from '../../api/index.ts'
import type { Condition } from '../../kube/index.ts'
import { findCondition, isTrue, type ConditionState } from '../../runtime/index.ts'
import { perNamespace } from '../../work/contract.ts'
import { ClusterRolesExist, RolesExist, WorkApplied } from '../contract.ts'
import { nameOfRef, rbacGroup } from '../bindings.ts'

type ResourceStatus = NonNullable<NonNullable<ClusterPermission['status']>['resourceStatus']>
type ManifestStatus = NonNullable<
  NonNullable<NonNullable<ManifestWork['status']>['resourceStatus']>['manifests']
>[number]

const { applied: appliedType, available: availableType } = conditionType.manifest

/** Whether the managed cluster has applied a work as it is now. */
export const appliedState = (work: ManifestWork | undefined): ConditionState => {
  if (!work) return WorkApplied.none('there is no ManifestWork: RBACManifestWorkCreated says why')
  const { name, namespace, generation } = work.metadata
  const look = `kubectl -n ${namespace} get manifestwork ${name} -o yaml`
  const applied = findCondition(work, conditionType.manifestWork.applied)
  if (!applied || applied.observedGeneration !== generation)
    return WorkApplied.pending(`the agent of cluster ${namespace} has not reported yet; ${look}`)
  if (applied.status === 'True') return WorkApplied.applied(selectionsOf(work) || applied.message)
  return WorkApplied.failed(firstFailure(work) ?? `${applied.message}; ${look}`)
}

/** How many namespaces each selector matches, in words; empty without selectors. */
const selectionsOf = (work: ManifestWork): string => {
  const selections = manifestsOf(work).filter(({ resourceMeta }) => resourceMeta.kind === perNamespace.kind)
  const words = selections.map((one) => conditionOf(one, appliedType)?.message ?? '')
  return words.length ? `Apply manifest work complete; by selector: ${words.join(', ')}` : ''
}

/** An agent that does not know how to choose namespaces says that there is no such kind; a person needs more. */
const firstFailure = (work: ManifestWork): string | undefined => {
  const failed = manifestsOf(work).find((one) => conditionOf(one, appliedType)?.status !== 'True')
  if (failed?.resourceMeta.kind !== perNamespace.kind) return undefined
  const said = conditionOf(failed, appliedType)?.message ?? ''
  return `what a namespaceSelector chooses is not delivered: ${said}; if the cluster's work agent is not Lanyard's, it does not know selectors: name the namespaces one by one, or run lanyard agent there`
}

const manifestsOf = (work: ManifestWork): ManifestStatus[] => work.status?.resourceStatus?.manifests ?? []
const conditionOf = ({ conditions }: ManifestStatus, type: string): Condition | undefined =>
  conditions?.find((condition) => condition.type === type)

/** etcd takes 1.5 MiB for an object; one entry takes about 350 bytes. */
const mostEntries = 2000

const lists = {
  ClusterRole: 'clusterRoles',
  ClusterRoleBinding: 'clusterRoleBindings',
  Role: 'roles',
  RoleBinding: 'roleBindings',
} as const

/** The state of each delivered object, as the managed cluster reports it; the failed ones first where there are too many. */
export const resourceStatusOf = (work: ManifestWork | undefined): ResourceStatus | undefined => {
  if (!work) return undefined
  const isReadOnly = readOnlyIn(work)
  const rbac = manifestsOf(work).filter(
    (one) => one.resourceMeta.group === rbacGroup && (one.resourceMeta.kind ?? '') in lists && !isReadOnly(one),
  )
  const isFailed = (one: ManifestStatus): boolean => conditionOf(one, appliedType)?.status !== 'True'
  const shown =
    rbac.length <= mostEntries
      ? rbac
      : [...rbac.filter(isFailed), ...rbac.filter((one) => !isFailed(one))].slice(0, mostEntries)
  const status: ResourceStatus = {}
  for (const one of shown) {
    const { kind, name = '', namespace } = one.resourceMeta
    const list = (status[lists[kind as keyof typeof lists]] ??= [])
    list.push({ name, ...(namespace && { namespace }), condition: [appliedEntry(one, work)] })
  }
  return status
}

const appliedEntry = (one: ManifestStatus, work: ManifestWork): Condition => {
  const applied = conditionOf(one, appliedType)
  if (applied?.status === 'True') return { ...applied, reason: 'AppliedManifestComplete' }
  if (applied) return { ...applied, status: 'False', reason: 'FailedApplyManifest' }
  return {
    type: appliedType,
    status: 'False',
    reason: 'FailedGetManifestCondition',
    message: 'Failed to get the manifest condition',
    lastTransitionTime: work.metadata.creationTimestamp!,
  }
}

const readOnlyIn = (work: ManifestWork): ((one: ManifestStatus) => boolean) => {
  const configs = (work.spec.manifestConfigs ?? []).filter(({ updateStrategy }) => updateStrategy?.type === 'ReadOnly')
  return ({ resourceMeta: { resource, name, namespace = '' } }) =>
    configs.some(
      ({ resourceIdentifier: id }) =>
        id.resource === resource && id.name === name && (id.namespace === '*' || (id.namespace ?? '') === namespace),
    )
}

/** With `validate`: whether the roles that bindings name are on the managed cluster. */
export const existenceStates = (work: ManifestWork | undefined, validate: boolean): ConditionState[] => {
  if (!validate || !work) return []
  const isReadOnly = readOnlyIn(work)
  const missing = (kind: string): string[] =>
    manifestsOf(work)
      .filter((one) => one.resourceMeta.kind === kind && isReadOnly(one))
      .filter((one) => conditionOf(one, availableType)?.status !== 'True')
      .map(({ resourceMeta }) =>
        nameOfRef({ kind, name: resourceMeta.name ?? '', namespace: resourceMeta.namespace }).slice(kind.length + 1),
      )
  const [roles, clusterRoles] = [missing('Role'), missing('ClusterRole')]
  return [
    roles.length ? RolesExist.no(`The following roles were not found: ${roles.join(', ')}`) : RolesExist.yes(),
    clusterRoles.length
      ? ClusterRolesExist.no(`The following cluster roles were not found: ${clusterRoles.join(', ')}`)
      : ClusterRolesExist.yes(),
  ]
}

/** Whether the work is applied as it is now. */
export const isApplied = (work: ManifestWork): boolean =>
  isTrue(work, conditionType.manifestWork.applied) &&
  findCondition(work, conditionType.manifestWork.applied)?.observedGeneration === work.metadata.generation
