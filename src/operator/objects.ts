import {
  apiVersionOf,
  resource,
  type ClusterRole,
  type KubeObject,
  type LabelSelector,
  type PolicyRule,
  type Resource,
  type Subject,
} from '../kube/index.ts'

/** The built-in kinds that only the operators write, with the fields that they use. */

export interface EnvVar {
  name: string
  value?: string
  valueFrom?: { fieldRef: { fieldPath: string } }
}

export interface Container {
  name: string
  image: string
  command?: string[]
  args?: string[]
  env?: EnvVar[]
  ports?: { name: string; containerPort: number }[]
  resources?: Resources
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[]
  [field: string]: unknown
}

/** What a container asks for and may use. */
export interface Resources {
  requests?: Record<string, string | number> | undefined
  limits?: Record<string, string | number> | undefined
}

export interface PodTemplate {
  metadata: { labels: Record<string, string>; annotations?: Record<string, string> }
  spec: {
    serviceAccountName: string
    containers: Container[]
    imagePullSecrets?: { name: string }[]
    nodeSelector?: Record<string, string> | undefined
    tolerations?: object[] | undefined
    priorityClassName?: string | undefined
    hostAliases?: { ip: string; hostnames: string[] }[]
    volumes?: object[]
    [field: string]: unknown
  }
}

export interface Deployment extends KubeObject {
  spec: {
    replicas: number
    selector: LabelSelector
    strategy?: { type: 'Recreate' } | { type: 'RollingUpdate'; rollingUpdate?: object }
    template: PodTemplate
  }
  status?: {
    observedGeneration?: number
    replicas?: number
    readyReplicas?: number
    updatedReplicas?: number
    availableReplicas?: number
    unavailableReplicas?: number
    conditions?: { type: string; status: string; reason?: string; message?: string }[]
  }
}
export const Deployment = resource<Deployment>({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
})

export interface CronJob extends KubeObject {
  spec: { schedule: string; concurrencyPolicy?: string; jobTemplate: { spec: { template: PodTemplate } } } & Record<
    string,
    unknown
  >
}
export const CronJob = resource<CronJob>({
  group: 'batch',
  version: 'v1',
  kind: 'CronJob',
  plural: 'cronjobs',
  namespaced: true,
})

export interface Job extends KubeObject {
  spec: { template: PodTemplate; backoffLimit?: number }
  status?: { succeeded?: number; failed?: number; conditions?: { type: string; status: string; message?: string }[] }
}
export const Job = resource<Job>({ group: 'batch', version: 'v1', kind: 'Job', plural: 'jobs', namespaced: true })

export interface Service extends KubeObject {
  spec: { selector: Record<string, string>; ports: { name: string; port: number; targetPort: string | number }[] }
}
export const Service = resource<Service>({
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
})

/** An object of a kind, with what says so. */
export const made = <T extends KubeObject>(of: Resource<T>, metadata: KubeObject['metadata'], fields: object = {}): T =>
  ({ apiVersion: apiVersionOf(of), kind: of.kind, metadata, ...fields }) as T

const rbacGroup = 'rbac.authorization.k8s.io'

export const rule = (
  apiGroups: string[],
  resources: string[],
  verbs: string[],
  resourceNames?: string[],
): PolicyRule => ({
  apiGroups,
  resources,
  verbs,
  ...(resourceNames ? { resourceNames } : {}),
})

export const roleRef = (
  kind: 'Role' | 'ClusterRole',
  name: string,
): { apiGroup: string; kind: string; name: string } => ({
  apiGroup: rbacGroup,
  kind,
  name,
})

export const serviceAccount = (namespace: string, name: string): Subject => ({
  kind: 'ServiceAccount',
  namespace,
  name,
})

/** Rules under a name, with labels that say whose they are. */
export const clusterRole = (name: string, rules: PolicyRule[], labels: Record<string, string>): ClusterRole => ({
  apiVersion: `${rbacGroup}/v1`,
  kind: 'ClusterRole',
  metadata: { name, labels },
  rules,
})
