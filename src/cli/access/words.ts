import { describeDeed, type Place } from '../../permissions/contract.ts'
import type { LabelSelector, PolicyRule } from '../../kube/index.ts'
import type { FleetGrant } from './fleet.ts'

/** `User ada`, `ServiceAccount shop/web`, `ManagedServiceAccount ci (ServiceAccount addons/ci)`. */
export const subjectText = ({ subject, serviceAccount }: Pick<FleetGrant, 'subject' | 'serviceAccount'>): string => {
  const own = `${subject.kind} ${subject.kind === 'ServiceAccount' ? `${subject.namespace ?? ''}/` : ''}${subject.name}`
  return serviceAccount ? `${own} (ServiceAccount ${serviceAccount.namespace}/${serviceAccount.name})` : own
}

export const placeText = (place: Place): string => {
  if (place === 'cluster') return 'everywhere'
  return 'namespace' in place
    ? `namespace ${place.namespace}`
    : `namespaces with ${selectorText(place.namespaceSelector)}`
}

export const selectorText = ({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string => {
  const parts = [
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(({ key, operator, values = [] }) =>
      values.length ? `${key} ${operator} (${values.join(', ')})` : `${key} ${operator}`,
    ),
  ]
  return parts.length ? parts.join(', ') : 'any labels'
}

export const roleText = ({ role }: Pick<FleetGrant, 'role'>): string => `${role.kind} ${role.name}`

/** `ClusterPermission c1/readers`. */
export const throughText = ({ through: { kind, namespace, name } }: Pick<FleetGrant, 'through'>): string =>
  `${kind} ${namespace ? `${namespace}/` : ''}${name}`

const mostRules = 4

/** Rules as a person says them: `get,list pods; * deployments.apps`. */
export const rulesText = (rules: readonly PolicyRule[] | undefined): string => {
  if (!rules) return 'only the cluster knows'
  const shown = rules.slice(0, mostRules).map(ruleText)
  return [...shown, ...(rules.length > mostRules ? [`and ${rules.length - mostRules} more rules`] : [])].join('; ')
}

const ruleText = ({ verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] }: PolicyRule) => {
  const verb = verbs.join(',')
  const names = resourceNames.length ? ` named ${resourceNames.join(',')}` : ''
  const on = apiGroups.flatMap((group) =>
    resources.map((resource) => describeDeed({ verb: '', group, resource }).trim()),
  )
  return `${verb} ${[...on, ...nonResourceURLs].join(',')}${names}`
}
