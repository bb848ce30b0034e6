import { resource, type KubeObject, type LabelSelector } from '../../src/kube/index.ts'

/** The parts of a pod that the runner acts on, as the API has them. */

export interface EnvVar {
  name: string
  value?: string | undefined
  valueFrom?: {
    fieldRef?: { fieldPath: string }
    secretKeyRef?: KeyRef
    configMapKeyRef?: KeyRef
  }
}

export interface KeyRef {
  name: string
  key: string
  optional?: boolean
}

export interface Probe {
  httpGet?: { path?: string; port: number | string; host?: string; scheme?: 'HTTP' | 'HTTPS' }
  tcpSocket?: { port: number | string; host?: string }
  exec?: { command: string[] }
  initialDelaySeconds?: number
  periodSeconds?: number
  timeoutSeconds?: number
  failureThreshold?: number
  successThreshold?: number
}

export interface Container {
  name: string
  image?: string
  command?: string[]
  args?: string[]
  workingDir?: string
  env?: EnvVar[]
  envFrom?: {
    prefix?: string
    configMapRef?: { name: string; optional?: boolean }
    secretRef?: { name: string; optional?: boolean }
  }[]
  ports?: { name?: string; containerPort: number }[]
  volumeMounts?: { name: string; mountPath: string; subPath?: string; readOnly?: boolean }[]
  readinessProbe?: Probe
  livenessProbe?: Probe
}

interface Items {
  items?: { key: string; path: string }[]
  optional?: boolean
}
interface DownwardItems {
  items?: { path: string; fieldRef?: { fieldPath: string } }[]
}

export interface TokenProjection {
  path: string
  audience?: string
  expirationSeconds?: number
}

export interface ProjectedSource {
  secret?: Items & { name: string }
  configMap?: Items & { name: string }
  downwardAPI?: DownwardItems
  serviceAccountToken?: TokenProjection
}

export interface Volume {
  name: string
  emptyDir?: object
  secret?: Items & { secretName: string; defaultMode?: number }
  configMap?: Items & { name: string; defaultMode?: number }
  downwardAPI?: DownwardItems & { defaultMode?: number }
  projected?: { sources: ProjectedSource[]; defaultMode?: number }
}

export interface PodSpec {
  containers: Container[]
  initContainers?: Container[]
  volumes?: Volume[]
  nodeName?: string
  schedulerName?: string
  serviceAccountName?: string
  restartPolicy?: 'Always' | 'OnFailure' | 'Never'
  terminationGracePeriodSeconds?: number
}

export interface ContainerState {
  waiting?: { reason: string; message?: string }
  running?: { startedAt: string }
  terminated?: {
    exitCode: number
    signal?: number
    reason: string
    startedAt: string
    finishedAt: string
    message?: string
  }
}

export interface ContainerStatus {
  name: string
  image: string
  imageID: string
  ready: boolean
  started: boolean
  restartCount: number
  state: ContainerState
  lastState: ContainerState
}

export interface PodCondition {
  type: string
  status: 'True' | 'False'
  lastTransitionTime: string
  reason?: string
  message?: string
}

export interface PodStatus {
  phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed'
  conditions?: PodCondition[]
  containerStatuses?: ContainerStatus[]
  initContainerStatuses?: ContainerStatus[]
  podIP?: string
  podIPs?: { ip: string }[]
  hostIP?: string
  startTime?: string
}

export interface Pod extends KubeObject {
  spec: PodSpec
  status?: PodStatus
}
export const Pod = resource<Pod>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true })

export interface ServicePort {
  name?: string
  port: number
  targetPort?: number | string
}
export interface Service extends KubeObject {
  spec: { clusterIP?: string; ports?: ServicePort[]; selector?: Record<string, string> }
}
export const Service = resource<Service>({
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
})

export interface EndpointSlice extends KubeObject {
  endpoints?: { addresses: string[]; conditions?: { ready?: boolean } }[] | null
  ports?: { name?: string; port?: number }[] | null
}
export const EndpointSlice = resource<EndpointSlice>({
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
})

export interface Deployment extends KubeObject {
  spec: {
    replicas?: number
    selector: LabelSelector
    strategy?: { type: 'Recreate' | 'RollingUpdate' }
    template: { metadata?: KubeObject['metadata']; spec: PodSpec }
  }
  status?: {
    observedGeneration?: number
    replicas?: number
    updatedReplicas?: number
    readyReplicas?: number
    availableReplicas?: number
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
