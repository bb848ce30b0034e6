import type { ClusterManager } from '../../api/index.ts'
import { flag, newReading, readGates, type GateRule, type Reading } from '../reading.ts'

type Spec = NonNullable<ClusterManager['spec']>

/** Gates of the field, and what they are here. A test compares those that can be set with what `lanyard hub` knows. */
export const hubGates: Readonly<Record<string, GateRule>> = {
  ManagedClusterAutoApproval: 'set',
  DefaultClusterSet: 'set',
  ResourceCleanup: 'set',
  NilExecutorValidating: 'set',
  AwsIdentities: 'set',
  AutoControllerIdentityCreator: 'set',
  ClusterProfile: 'set',
  AddonManagement: 'on',
  V1beta1CSRAPICompatibility: 'off',
  ClusterImporter: 'off',
  ManifestWorkReplicaSet: 'off',
  CloudEventsDrivers: 'off',
  CleanUpCompletedManifestWork: 'off',
}

/** The image of the hub: one process does what these fields name several for. */
export const hubImage = (spec: Spec, fallback: string): string => spec.registrationImagePullSpec || fallback

const otherImages = ['workImagePullSpec', 'placementImagePullSpec', 'addOnManagerImagePullSpec'] as const

/** Whether the hub has a gRPC endpoint. */
export const servesGrpc = (spec: Spec): boolean =>
  spec.registrationConfiguration?.registrationDrivers?.some(({ authType }) => authType === 'grpc') ?? false

type Exposure = NonNullable<NonNullable<NonNullable<Spec['serverConfiguration']>['endpointsExposure']>[number]['grpc']>

/** How it is reached from outside. */
export const grpcExposures = (spec: Spec): Exposure[] =>
  spec.serverConfiguration?.endpointsExposure?.flatMap(({ protocol = 'grpc', grpc }) =>
    protocol === 'grpc' && grpc ? [grpc] : [],
  ) ?? []

/** The names that its certificate has to hold, without their ports. */
const namesOf = ({ hostname, loadBalancer, route }: Exposure): string[] =>
  [hostname, loadBalancer, route].flatMap((of) => (of?.host ? [hostOf(of.host)] : []))

const hostOf = (host: string): string =>
  URL.canParse(`https://${host}`) ? new URL(`https://${host}`).hostname.replace(/^\[|\]$/g, '') : host

/** What a ClusterManager's spec means: the flags of `lanyard hub`, and what cannot be done. */
export const readHubSpec = (spec: Spec, supported: { image: string; drivers: readonly string[] }): Reading => {
  const reading = newReading()
  const { flags, ignored, refused, badGates } = reading
  const registration = spec.registrationConfiguration ?? {}
  const image = hubImage(spec, supported.image)

  if (spec.deployOption?.mode === 'Hosted')
    refused.push('deployOption.mode Hosted: a hub runs in its own cluster; set Default and create this object there')
  for (const field of otherImages)
    if (spec[field] && spec[field] !== image)
      ignored.push(`${field}: the hub is one process, with the image ${image} of registrationImagePullSpec`)
  if (registration.importerConfiguration?.renderers?.length)
    ignored.push('registrationConfiguration.importerConfiguration: clusters join by themselves, nothing is imported')
  const { workDriver = 'kube' } = spec.workConfiguration ?? {}
  if (workDriver !== 'kube') ignored.push(`workConfiguration.workDriver ${workDriver}: works travel by the API server`)

  const drivers = registration.registrationDrivers?.length ? registration.registrationDrivers : [{ authType: 'csr' }]
  const names = drivers.map(({ authType = 'csr' }) => authType)
  for (const name of names.filter((one) => !supported.drivers.includes(one)))
    refused.push(`registrationDrivers ${name}: this version knows ${supported.drivers.join(', ')}`)
  if (spec.serverConfiguration && !names.includes('grpc'))
    ignored.push('serverConfiguration: it is for the gRPC endpoint, and registrationDrivers has no grpc')

  const users = new Set(registration.autoApproveUsers)
  flags.push(...flag('registration-drivers', names))
  for (const driver of registration.registrationDrivers ?? []) {
    for (const user of driver.csr?.autoApprovedIdentities ?? []) users.add(user)
    if (driver.authType === 'awsirsa') {
      flags.push(...flag('hub-cluster-arn', driver.awsirsa?.hubClusterArn))
      const patterns = driver.awsirsa?.autoApprovedIdentities ?? []
      for (const pattern of patterns.filter((one) => one.includes(',')))
        ignored.push(`registrationDrivers awsirsa autoApprovedIdentities ${pattern}: write it without a comma`)
      flags.push(
        ...flag(
          'auto-approved-arn-patterns',
          patterns.filter((one) => !one.includes(',')),
        ),
      )
      flags.push(...flag('aws-resource-tags', driver.awsirsa?.tags))
    }
    if (driver.authType === 'grpc') flags.push(...flag('auto-approved-grpc-users', driver.grpc?.autoApprovedIdentities))
  }
  if (names.includes('grpc')) flags.push(...flag('grpc-names', grpcExposures(spec).flatMap(namesOf)))
  flags.push(...flag('auto-approved-csr-users', [...users]))
  const gates = [registration, spec.workConfiguration, spec.addOnManagerConfiguration, spec.serverConfiguration]
  flags.push(
    ...flag(
      'feature-gates',
      gates.flatMap((of) => readGates(of?.featureGates, hubGates, badGates)),
    ),
  )
  if (users.size > 0 && !flags.some((one) => one.includes('ManagedClusterAutoApproval=true')))
    ignored.push('autoApproveUsers: they count once the gate ManagedClusterAutoApproval is enabled')
  return reading
}
