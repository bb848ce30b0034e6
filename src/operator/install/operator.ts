import {
  ClusterRoleBinding,
  Namespace,
  Role,
  RoleBinding,
  Secret,
  ServiceAccount,
  type KubeObject,
  type PolicyRule,
} from '../../kube/index.ts'
import { namespace, pullSecret } from '../contract.ts'
import { clusterRole, Deployment, made, roleRef, rule, serviceAccount } from '../objects.ts'
import { podTemplate } from '../pod.ts'
import { imageOf, type InstallOptions } from './options.ts'

/** One operator: which kind it serves, and what it may do. */
export interface OperatorParts {
  /** Of Deployment, service account and binding. */
  name: string
  /** The kind whose objects it follows. */
  kind: 'ClusterManager' | 'Klusterlet'
  role: string
  rules: PolicyRule[]
  args?: readonly string[]
}

/** On everything that an installation brings, so that it can be found again. */
export const installedBy = (name: string): Record<string, string> => ({
  'app.kubernetes.io/name': 'lanyard',
  'app.kubernetes.io/component': `${name}-operator`,
})

/** Both operators live here; whoever goes last removes it. */
export const operatorNamespace: KubeObject = made(Namespace, { name: namespace.operator })

/** An operator's account, its rights and its Deployment. */
export const operatorObjects = (parts: OperatorParts, options: InstallOptions): KubeObject[] => {
  const { name } = parts
  const labels = installedBy(name)
  const here = { namespace: namespace.operator, labels }
  const subjects = [serviceAccount(namespace.operator, name)]
  const image = imageOf(options)
  const args = ['operator', `--kind=${parts.kind}`, `--image=${image}`, ...(parts.args ?? [])]
  const pull = options.pullCredentials === undefined ? [] : [pullSecretOf(options.pullCredentials, labels)]
  return [
    ...pull,
    made(ServiceAccount, { name, ...here }),
    clusterRole(parts.role, parts.rules, labels),
    made(ClusterRoleBinding, { name: parts.role, labels }, { roleRef: roleRef('ClusterRole', parts.role), subjects }),
    made(Role, { name: parts.role, ...here }, { rules: atHome(name) }),
    made(RoleBinding, { name: parts.role, ...here }, { roleRef: roleRef('Role', parts.role), subjects }),
    made(
      Deployment,
      { name, ...here },
      {
        spec: {
          replicas: options.replicas ?? 1,
          selector: { matchLabels: { app: name } },
          template: podTemplate({
            app: name,
            labels,
            account: name,
            image,
            args,
            sizing: options.sizing,
            pullSecret: pull.length ? pullSecret : undefined,
          }),
        },
      },
    ),
  ]
}

/** In its own namespace an operator elects its leader, and reads the credentials that it copies. */
const atHome = (name: string): PolicyRule[] => [
  rule(['coordination.k8s.io'], ['leases'], ['create']),
  rule(['coordination.k8s.io'], ['leases'], ['get', 'list', 'watch', 'update'], [`${name}-operator`]),
  rule([''], ['secrets'], ['get', 'list', 'watch'], [pullSecret]),
]

const pullSecretOf = (credentials: string, labels: Record<string, string>): Secret =>
  made(
    Secret,
    { name: pullSecret, namespace: namespace.operator, labels },
    {
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': Buffer.from(credentials).toString('base64') },
    },
  )
