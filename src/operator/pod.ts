import { healthPort } from './contract.ts'
import type { Container, EnvVar, PodTemplate, Resources } from './objects.ts'

/** How big the pods are: a fixed guess, nothing set aside at all, or what somebody measured. */
export interface Sizing {
  type?: string | undefined
  resourceRequirements?: Resources | undefined
}

/** Requests that a process of ours outgrows only with a large fleet; no limits, so that none is killed for being busy. */
const usual: Resources = { requests: { cpu: '20m', memory: '96Mi' } }

const resourcesOf = ({ type = 'Default', resourceRequirements }: Sizing = {}): Resources => {
  if (type === 'BestEffort') return {}
  return type === 'ResourceRequirement' ? (resourceRequirements ?? {}) : usual
}

/** One `lanyard` process in a pod, and where the pod may run. */
export interface PodOptions {
  app: string
  labels?: Record<string, string> | undefined
  annotations?: Record<string, string> | undefined
  account: string
  image: string
  /** The program and its flags, without addresses: those are added here. */
  args: readonly string[]
  /** Serves health; a program that ends by itself does not. */
  serves?: boolean | undefined
  /** What counts as ready; unless told, that it says so itself. */
  readiness?: '/readyz' | '/healthz' | undefined
  ports?: { name: string; containerPort: number }[] | undefined
  sizing?: Sizing | undefined
  pullSecret?: string | undefined
  nodePlacement?: { nodeSelector?: Record<string, string> | undefined; tolerations?: object[] | undefined } | undefined
  priorityClassName?: string | undefined
  hostAlias?: { ip: string; hostname: string } | undefined
  /** Secrets as folders. */
  secrets?: { name: string; at: string }[] | undefined
  more?: Record<string, unknown> | undefined
}

const field = (name: string, fieldPath: string): EnvVar => ({ name, valueFrom: { fieldRef: { fieldPath } } })

const downward: EnvVar[] = [
  field('POD_NAMESPACE', 'metadata.namespace'),
  field('POD_NAME', 'metadata.name'),
  field('POD_IP', 'status.podIP'),
]

const probe = (path: string, more: object) => ({ httpGet: { path, port: healthPort }, ...more })

/** The pod: not root, nothing writable, no privileges; the address that it serves on is its own. */
export const podTemplate = (options: PodOptions): PodTemplate => {
  const { app, account, image, serves = true, nodePlacement, hostAlias, secrets = [] } = options
  const container: Container = {
    name: app,
    image,
    command: ['lanyard'],
    args: [...options.args, ...(serves ? ['--health-host=$(POD_IP)', `--health-port=${healthPort}`] : [])],
    env: downward,
    resources: resourcesOf(options.sizing),
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    ...(serves && {
      ports: [{ name: 'health', containerPort: healthPort }, ...(options.ports ?? [])],
      // A watch may be silent for minutes before it counts as dead, and a restart mends little: no hurry.
      livenessProbe: probe('/healthz', { periodSeconds: 20, failureThreshold: 6, timeoutSeconds: 5 }),
      readinessProbe: probe(options.readiness ?? '/readyz', { periodSeconds: 5, timeoutSeconds: 5 }),
    }),
    ...(secrets.length > 0 && {
      volumeMounts: secrets.map(({ name, at }) => ({ name, mountPath: at, readOnly: true })),
    }),
  }
  return {
    metadata: {
      labels: { ...options.labels, app },
      ...(options.annotations && Object.keys(options.annotations).length > 0 && { annotations: options.annotations }),
    },
    spec: {
      serviceAccountName: account,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      ...(options.pullSecret && { imagePullSecrets: [{ name: options.pullSecret }] }),
      ...(nodePlacement?.nodeSelector && { nodeSelector: nodePlacement.nodeSelector }),
      ...(nodePlacement?.tolerations && { tolerations: nodePlacement.tolerations }),
      ...(options.priorityClassName && { priorityClassName: options.priorityClassName }),
      ...(hostAlias && { hostAliases: [{ ip: hostAlias.ip, hostnames: [hostAlias.hostname] }] }),
      ...(secrets.length > 0 && { volumes: secrets.map(({ name }) => ({ name, secret: { secretName: name } })) }),
      ...options.more,
      containers: [container],
    },
  }
}
