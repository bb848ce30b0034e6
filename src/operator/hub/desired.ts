import type { ClusterManager } from '../../api/index.ts'
import { Secret, ServiceAccount, type KubeObject } from '../../kube/index.ts'
import { hubRole, roleAnnotation } from '../aws-roles.ts'
import {
  cleanupJob,
  createdBy,
  deploymentName,
  grpcPort,
  hubAccount,
  namespace,
  pullSecret,
  webhookPort,
  webhookService,
} from '../contract.ts'
import { grpcService } from '../../registration/contract.ts'
import { hubBindings } from '../install/index.ts'
import { CronJob, Deployment, made, Service } from '../objects.ts'
import { podTemplate } from '../pod.ts'
import { grpcExposures, hubImage, servesGrpc } from './spec.ts'

export interface HubSettings {
  /** For a ClusterManager that names none. */
  image: string
  replicas: number
  /** Registry credentials of the operator, to be copied; undefined when there are none. */
  pullCredentials?: Secret | undefined
}

const app = 'clustermanager-hub'

/** Spreads the replicas over nodes where that is possible. */
const apart = {
  podAntiAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      {
        weight: 100,
        podAffinityTerm: { labelSelector: { matchLabels: { app } }, topologyKey: 'kubernetes.io/hostname' },
      },
    ],
  },
}

/** The hub itself. */
export const hubDeployment = (manager: ClusterManager, flags: readonly string[], settings: HubSettings): Deployment => {
  const name = manager.metadata.name!
  const spec = manager.spec ?? {}
  return made(
    Deployment,
    { name: deploymentName.hub(name), namespace: namespace.hub, labels: { [createdBy.clusterManager]: name } },
    {
      spec: {
        replicas: settings.replicas,
        selector: { matchLabels: { app } },
        template: podTemplate({
          app,
          account: hubAccount.hub,
          image: hubImage(spec, settings.image),
          args: [
            'hub',
            `--namespace=${namespace.hub}`,
            `--agent-image=${hubImage(spec, settings.image)}`,
            ...flags,
            ...(servesGrpc(spec) ? ['--grpc-host=$(POD_IP)', `--grpc-port=${grpcPort}`] : []),
            '--webhook-host=$(POD_IP)',
            `--webhook-port=${webhookPort}`,
            `--webhook-service=${webhookService}`,
          ],
          ports: [
            { name: 'webhook', containerPort: webhookPort },
            ...(servesGrpc(spec) ? [{ name: 'grpc', containerPort: grpcPort }] : []),
          ],
          sizing: spec.resourceRequirement,
          nodePlacement: spec.nodePlacement,
          pullSecret: settings.pullCredentials && pullSecret,
          more: settings.replicas > 1 ? { affinity: apart } : {},
        }),
      },
    },
  )
}

/** Looks each hour for ManagedClusters whose clusters have left, and deletes them. */
export const cleanupCronJob = (manager: ClusterManager, settings: HubSettings): CronJob => {
  const name = manager.metadata.name!
  const spec = manager.spec ?? {}
  const template = podTemplate({
    app: 'clustermanager-cleanup-unjoined',
    account: hubAccount.cleanup,
    image: hubImage(spec, settings.image),
    args: ['cleanup-unjoined'],
    serves: false,
    sizing: spec.resourceRequirement,
    nodePlacement: spec.nodePlacement,
    pullSecret: settings.pullCredentials && pullSecret,
    more: { restartPolicy: 'Never' },
  })
  return made(
    CronJob,
    { name: cleanupJob(name), namespace: namespace.hub, labels: { [createdBy.clusterManager]: name } },
    {
      spec: {
        schedule: '17 * * * *',
        concurrencyPolicy: 'Forbid',
        successfulJobsHistoryLimit: 1,
        failedJobsHistoryLimit: 2,
        jobTemplate: { spec: { backoffLimit: 0, activeDeadlineSeconds: 600, template } },
      },
    },
  )
}

/** Everything else that the hub runs with. */
export const hubObjects = (manager: ClusterManager, settings: HubSettings): KubeObject[] => {
  const name = manager.metadata.name!
  const here = { namespace: namespace.hub, labels: { [createdBy.clusterManager]: name } }
  const drivers = manager.spec?.registrationConfiguration?.registrationDrivers ?? []
  const arn = drivers.find(({ authType }) => authType === 'awsirsa')?.awsirsa?.hubClusterArn
  return [
    made(ServiceAccount, {
      name: hubAccount.hub,
      ...here,
      ...(arn && { annotations: { [roleAnnotation]: hubRole(arn) } }),
    }),
    made(ServiceAccount, { name: hubAccount.cleanup, ...here }),
    made(
      Service,
      { name: webhookService, ...here },
      { spec: { selector: { app }, ports: [{ name: 'webhook', port: 443, targetPort: webhookPort }] } },
    ),
    ...(servesGrpc(manager.spec ?? {}) ? [endpointService(manager, here)] : []),
    ...hubBindings(name, {
      awsIrsa: arn !== undefined,
      awsIdentities: isEnabled(manager, 'AwsIdentities'),
      clusterProfiles: isEnabled(manager, 'ClusterProfile'),
      grpc: servesGrpc(manager.spec ?? {}),
    }),
    ...(settings.pullCredentials ? [pullCopy(settings.pullCredentials, here)] : []),
  ]
}

/** How agents from outside come to the endpoint: by a load balancer of the cloud, or by whatever else leads to this Service. */
const endpointService = ({ spec = {} }: ClusterManager, here: KubeObject['metadata']): KubeObject =>
  made(
    Service,
    { name: grpcService, ...here },
    {
      spec: {
        type: grpcExposures(spec).some(({ type }) => type === 'loadBalancer') ? 'LoadBalancer' : 'ClusterIP',
        selector: { app },
        ports: [{ name: 'grpc', port: grpcPort, targetPort: grpcPort, protocol: 'TCP' }],
      },
    },
  )

const isEnabled = ({ spec = {} }: ClusterManager, gate: string): boolean =>
  [
    spec.registrationConfiguration,
    spec.workConfiguration,
    spec.addOnManagerConfiguration,
    spec.serverConfiguration,
  ].some((of) => of?.featureGates?.some(({ feature, mode }) => feature === gate && mode === 'Enable'))

const pullCopy = ({ type, data }: Secret, at: KubeObject['metadata']): Secret =>
  made(Secret, { name: pullSecret, ...at }, { type, data })
