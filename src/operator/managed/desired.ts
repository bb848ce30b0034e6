import { createHash } from 'node:crypto'
import type { Klusterlet } from '../../api/index.ts'
import {
  ClusterRoleBinding,
  Namespace,
  RoleBinding,
  Secret,
  ServiceAccount,
  type KubeObject,
} from '../../kube/index.ts'
import { agentRole, roleAnnotation } from '../aws-roles.ts'
import {
  agentAccount,
  createdBy,
  deploymentName,
  externalKubeconfigSecret,
  namespace,
  pullSecret,
  role,
} from '../contract.ts'
import { managedCrds } from '../install/index.ts'
import { Deployment, Job, made, roleRef, serviceAccount } from '../objects.ts'
import { podTemplate, type PodOptions } from '../pod.ts'
import { labelled } from '../set.ts'
import type { Place } from './place.ts'
import { agentImage } from './spec.ts'

export interface AgentSettings {
  image: string
  workRole: string
  pullCredentials?: Secret | undefined
  /** The way to a cluster that is managed from here. */
  external?: Secret | undefined
}

/** The owner of what all Klusterlets of a cluster share. No Klusterlet has this name: names are in lower case. */
export const sharedOwner = 'AllKlusterlets'

const kubeconfigFolder = '/spoke/config'

/** How a process of the agent finds its two clusters. */
const whereFlags = ({ namespace, hosted }: Place): string[] => [
  `--namespace=${namespace}`,
  ...(hosted ? ['--hosted', `--kubeconfig=${kubeconfigFolder}/kubeconfig`] : []),
]

const podOf = ({ spec = {} }: Klusterlet, place: Place, settings: AgentSettings): Omit<PodOptions, 'app' | 'args'> => ({
  account: agentAccount.work(place.klusterlet),
  image: agentImage(spec, settings.image),
  sizing: spec.resourceRequirement,
  nodePlacement: spec.nodePlacement,
  priorityClassName: spec.priorityClassName,
  hostAlias: spec.hubApiServerHostAlias,
  pullSecret: settings.pullCredentials && pullSecret,
  secrets: place.hosted ? [{ name: externalKubeconfigSecret, at: kubeconfigFolder }] : [],
})

/** On pods that read a secret once, at their start: a change of it starts them anew. */
const secretHash = 'lanyard.io/managed-kubeconfig-hash'
const hashOf = ({ data = {} }: Secret): string =>
  createHash('sha256')
    .update(JSON.stringify(Object.entries(data).toSorted(([a], [b]) => (a < b ? -1 : 1))))
    .digest('hex')
    .slice(0, 32)

/**
 * The agent. Never two at once: both would write the same secret and answer for the same cluster. So the old pod ends
 * before the new one starts, which costs seconds without a heartbeat; a hub notices after minutes.
 */
export const agentDeployment = (
  klusterlet: Klusterlet,
  place: Place,
  flags: readonly string[],
  settings: AgentSettings,
): Deployment => {
  const app = deploymentName.agent(place.klusterlet)
  return made(
    Deployment,
    { name: app, namespace: place.namespace, labels: { [createdBy.klusterlet]: place.klusterlet } },
    {
      spec: {
        replicas: 1,
        strategy: { type: 'Recreate' },
        selector: { matchLabels: { app } },
        template: podTemplate({
          ...podOf(klusterlet, place, settings),
          app,
          args: ['agent', ...whereFlags(place), ...flags],
          // Ready when it works: whether the hub has accepted the cluster is said by HubConnectionDegraded.
          readiness: '/healthz',
          annotations: settings.external ? { [secretHash]: hashOf(settings.external) } : {},
        }),
      },
    },
  )
}

export const leaveJobName = (klusterlet: string): string => `${klusterlet}-leave`

/** Takes the cluster away from its hub and removes what works have left, with the credentials and rights of the agent. */
export const leaveJob = (
  klusterlet: Klusterlet,
  place: Place,
  flags: readonly string[],
  { seconds, ...settings }: AgentSettings & { seconds: number },
): Job => {
  const driver = flags.filter((one) => /^--(registration-auth|hub-cluster-arn|managed-cluster-arn)=/.test(one))
  const app = leaveJobName(place.klusterlet)
  const template = podTemplate({
    ...podOf(klusterlet, place, settings),
    app,
    args: ['leave', ...whereFlags(place), ...driver, `--patience-seconds=${seconds}`],
    serves: false,
    more: { restartPolicy: 'Never' },
  })
  return made(
    Job,
    { name: app, namespace: place.namespace, labels: { [createdBy.klusterlet]: place.klusterlet } },
    { spec: { backoffLimit: 2, template } },
  )
}

/** Accounts, rights and credentials of one agent, on the cluster where it runs. */
export const agentObjects = (klusterlet: Klusterlet, place: Place, settings: AgentSettings): KubeObject[] => {
  const name = place.klusterlet
  const labels = { [createdBy.klusterlet]: name }
  const here = { namespace: place.namespace, labels }
  const { awsIrsa, authType } = klusterlet.spec?.registrationConfiguration?.registrationDriver ?? {}
  const annotations =
    authType === 'awsirsa' && awsIrsa
      ? { annotations: { [roleAnnotation]: agentRole(awsIrsa.hubClusterArn, awsIrsa.managedClusterArn) } }
      : {}
  const subjects = [serviceAccount(place.namespace, agentAccount.work(name))]
  const everywhere = (what: string, bound: string): KubeObject =>
    made(
      ClusterRoleBinding,
      { name: `open-cluster-management:${name}:${what}`, labels },
      { roleRef: roleRef('ClusterRole', bound), subjects },
    )
  const within = (where: string): KubeObject =>
    made(
      RoleBinding,
      { name: `open-cluster-management:${name}:agent`, namespace: where, labels },
      { roleRef: roleRef('ClusterRole', role.agentNamespace), subjects },
    )
  return [
    made(ServiceAccount, { name: agentAccount.registration(name), ...here, ...annotations }),
    made(ServiceAccount, { name: agentAccount.work(name), ...here, ...annotations }),
    within(place.namespace),
    // Elsewhere it is whoever the kubeconfig of the managed cluster says.
    ...(place.hosted
      ? []
      : [within(namespace.addOns), everywhere('agent', role.agent), everywhere('work', settings.workRole)]),
    ...(settings.pullCredentials ? [pullCopy(settings.pullCredentials, here)] : []),
  ]
}

/** What every managed cluster has once, however many hubs it belongs to. */
export const sharedObjects = (): KubeObject[] =>
  [made(Namespace, { name: namespace.addOns }), ...managedCrds()].map((object) =>
    labelled(object as KubeObject, createdBy.klusterlet, sharedOwner),
  )

export const agentNamespace = (place: Place): Namespace =>
  made(Namespace, { name: place.namespace, labels: { [createdBy.klusterlet]: place.klusterlet } })

const pullCopy = ({ type, data }: Secret, at: KubeObject['metadata']): Secret =>
  made(Secret, { name: pullSecret, ...at }, { type, data })
