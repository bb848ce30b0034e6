import { group, type ManagedClusterAddOn } from '../../api/index.ts'
import type { PolicyRule, Unstructured } from '../../kube/index.ts'
import { isTrue } from '../../runtime/index.ts'
import { addOnSecretName } from '../../addons/contract.ts'
import { addOnName, agentAccount, agentDeployment, RunsInAgent } from '../contract.ts'

/**
 * What the agent may do on the hub, in its cluster's namespace. It reads no Secret there; which ones it may write is said by the
 * admission rules of `guard.ts`.
 */
export const agentRules: readonly PolicyRule[] = [
  { apiGroups: [group.authentication], resources: ['managedserviceaccounts'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [group.authentication], resources: ['managedserviceaccounts/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['secrets'], verbs: ['create', 'patch'] },
]

/** What it may do on the managed cluster, in its own namespace. */
export const localRules: readonly PolicyRule[] = [
  {
    apiGroups: [''],
    resources: ['serviceaccounts'],
    verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
  },
  { apiGroups: [''], resources: ['serviceaccounts/token'], verbs: ['create'] },
]

export interface ManifestOptions {
  cluster: string
  namespace: string
  /** Of the program itself. */
  image: string
  addOn: ManagedClusterAddOn
}

const roleName = `open-cluster-management:${addOnName}:addon-agent`
const hubFolder = '/etc/hub'
const healthPort = 8000

/** The objects on a managed cluster. The account is there in any case: what the agent makes belongs to it, and goes with it. */
export const manifestsFor = (options: ManifestOptions): Unstructured[] => {
  const { namespace, addOn } = options
  const here = { name: roleName, namespace }
  const rbac = 'rbac.authorization.k8s.io'
  return [
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      // Others live there, too.
      metadata: { name: namespace, annotations: { 'addon.open-cluster-management.io/deletion-orphan': '' } },
    },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: agentAccount, namespace } },
    { apiVersion: `${rbac}/v1`, kind: 'Role', metadata: here, rules: localRules },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: here,
      roleRef: { apiGroup: rbac, kind: 'Role', name: roleName },
      subjects: [{ kind: 'ServiceAccount', namespace, name: agentAccount }],
    },
    ...(isTrue(addOn, RunsInAgent.type) ? [] : [deployment(options)]),
  ]
}

const probe = (path: string, more: object) => ({ httpGet: { path, port: healthPort }, timeoutSeconds: 5, ...more })

const deployment = ({ cluster, namespace, image }: ManifestOptions): Unstructured => {
  const labels = { app: agentDeployment, 'addon-agent': addOnName }
  const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } })
  const container = {
    name: agentDeployment,
    image,
    command: ['lanyard'],
    args: [
      'service-accounts-agent',
      `--cluster-name=${cluster}`,
      `--namespace=${namespace}`,
      `--hub-kubeconfig=${hubFolder}/kubeconfig`,
      '--health-host=$(POD_IP)',
      `--health-port=${healthPort}`,
    ],
    env: [field('POD_NAMESPACE', 'metadata.namespace'), field('POD_IP', 'status.podIP')],
    ports: [{ name: 'health', containerPort: healthPort }],
    resources: { requests: { cpu: '10m', memory: '64Mi' } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: [{ name: 'hub', mountPath: hubFolder, readOnly: true }],
    livenessProbe: probe('/healthz', { periodSeconds: 10, failureThreshold: 6 }),
    readinessProbe: probe('/readyz', { periodSeconds: 5 }),
  }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: agentDeployment, namespace, labels },
    spec: {
      replicas: 1,
      // Two at once would both renew the same tokens: nothing breaks, and nothing is gained.
      strategy: { type: 'Recreate' },
      selector: { matchLabels: { app: agentDeployment } },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: agentAccount,
          securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
          containers: [container],
          // The pod starts as soon as the cluster's agent has got the credential.
          volumes: [{ name: 'hub', secret: { secretName: addOnSecretName.kubeClient(addOnName) } }],
        },
      },
    },
  }
}
