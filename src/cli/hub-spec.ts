import type { ClusterManager } from '../api/index.ts'
import { closest } from '../kube/words/index.ts'
import { UsageError, type Flags, type ValuesOf } from '../main/flags.ts'
import { parsePattern } from '../registration/drivers/index.ts'
import { checkedEksArn, isEksArn, strategies, type Strategy } from './eks.ts'
import { gatesBy, installFlags, keyAndValue, mergedGates, sizingOf } from './install-flags.ts'

type Spec = NonNullable<ClusterManager['spec']>
type Drivers = NonNullable<NonNullable<Spec['registrationConfiguration']>['registrationDrivers']>

/** What a person says about a hub. */
export const hubFlags = {
  'registration-auth': {
    help: 'How clusters may prove who they are: csr, aws-irsa, grpc; with commas or repeated',
    default: ['csr'],
    value: 'LIST',
    aliases: ['registration-drivers'],
    choices: ['csr', 'aws-irsa', 'awsirsa', 'grpc'],
  },
  'hub-cluster-arn': {
    help: 'With aws-irsa: the ARN of this hub, where the kubeconfig does not say it',
    default: '',
    value: 'ARN',
    aliases: ['eks-hub-cluster-arn'],
  },
  'aws-resource-tags': { help: 'With aws-irsa: tags for the IAM objects, key=value', default: [], value: 'LIST' },
  'auto-approved-csr-identities': { help: 'Users whose clusters need no person, with csr', default: [], value: 'LIST' },
  'auto-approved-arn-patterns': {
    help: 'Regular expressions of cluster ARNs that need no person, with aws-irsa; none: all wait for one; *: all',
    default: [],
    value: 'LIST',
  },
  'auto-approved-grpc-identities': {
    help: 'Users whose clusters need no person, with grpc',
    default: [],
    value: 'LIST',
  },
  'grpc-server': {
    help: 'With grpc: where clusters reach the endpoint, host or host:port',
    default: '',
    value: 'HOST',
  },
  'grpc-endpoint-type': {
    help: 'With grpc: what stands in front of the endpoint',
    default: 'hostname',
    value: 'TYPE',
    choices: ['hostname', 'loadBalancer'],
  },
  'feature-gates': { help: 'Gate=true,Other=false', default: [], value: 'LIST' },
  ...installFlags,
} as const satisfies Flags

export type HubValues = ValuesOf<typeof hubFlags>

const gates = {
  DefaultClusterSet: 'registration',
  ResourceCleanup: 'registration',
  ManagedClusterAutoApproval: 'registration',
  ClusterProfile: 'registration',
  ClusterImporter: 'registration',
  V1beta1CSRAPICompatibility: 'registration',
  NilExecutorValidating: 'work',
  ManifestWorkReplicaSet: 'work',
  CloudEventsDrivers: 'work',
  CleanUpCompletedManifestWork: 'work',
  AddonManagement: 'addOnManager',
} as const

/** The strategies that were chosen, as objects hold them. */
export const strategiesOf = (said: readonly string[]): Strategy[] => {
  const names = new Set(said.map((one) => (one === 'aws-irsa' ? 'awsirsa' : one)))
  return strategies.filter((one) => names.has(one))
}

/** What flags say must agree with each other before a cluster is asked anything. */
export const checkHubFlags = (flags: HubValues, given: ReadonlySet<string>): void => {
  const chosen = strategiesOf(flags['registration-auth'])
  const needs = (flag: string, strategy: Strategy): void => {
    const typed = strategy === 'awsirsa' ? 'aws-irsa' : strategy
    if (given.has(flag) && !chosen.includes(strategy))
      throw new UsageError(`--${flag} needs --registration-auth ${typed}`)
  }
  needs('hub-cluster-arn', 'awsirsa')
  needs('aws-resource-tags', 'awsirsa')
  needs('auto-approved-arn-patterns', 'awsirsa')
  needs('auto-approved-csr-identities', 'csr')
  needs('auto-approved-grpc-identities', 'grpc')
  needs('grpc-server', 'grpc')
  const on = (gatesBy(flags['feature-gates'], gates, closest).registration ?? []).some(
    ({ feature, mode }) => feature === 'ManagedClusterAutoApproval' && mode === 'Enable',
  )
  for (const flag of ['auto-approved-csr-identities', 'auto-approved-arn-patterns', 'auto-approved-grpc-identities'])
    if (given.has(flag) && !on) throw new UsageError(`--${flag} needs --feature-gates ManagedClusterAutoApproval=true`)
  for (const pattern of flags['auto-approved-arn-patterns']) checkPattern(pattern)
  for (const tag of flags['aws-resource-tags']) keyAndValue('--aws-resource-tags', tag)
  if (flags['hub-cluster-arn']) checkedEksArn('--hub-cluster-arn', flags['hub-cluster-arn'])
  if (
    chosen.includes('grpc') &&
    flags['grpc-endpoint-type'] === 'hostname' &&
    given.has('grpc-endpoint-type') &&
    !flags['grpc-server']
  )
    throw new UsageError('--grpc-endpoint-type hostname needs --grpc-server')
  sizingOf(flags)
}

// By the hub's own reader: what is taken here is never refused there.
const checkPattern = (pattern: string): void => {
  try {
    parsePattern(pattern)
  } catch (error) {
    throw new UsageError(`--auto-approved-arn-patterns: ${(error as Error).message}`, { cause: error })
  }
}

/** The hub's own ARN: told, or the name by which the kubeconfig calls it. */
export const hubArnOf = (flags: HubValues, signs: { clusterName: string; context: string }): string => {
  const arn = flags['hub-cluster-arn'] || [signs.clusterName, signs.context].find(isEksArn)
  if (arn) return arn
  throw new UsageError(
    '--hub-cluster-arn is missing: aws-irsa needs the ARN of this hub, and the kubeconfig does not say it',
  )
}

/**
 * The spec that flags and what is there give together: on a hub that exists, only what was said is changed, so that running
 * init again undoes nobody's work.
 */
export const hubSpec = (
  flags: HubValues,
  given: ReadonlySet<string>,
  { present, hubArn }: { present?: Spec | undefined; hubArn?: string | undefined },
): Spec => {
  const said = gatesBy(flags['feature-gates'], gates, closest)
  const registration = present?.registrationConfiguration
  const registrationGates = mergedGates(registration?.featureGates, said.registration)
  const workGates = mergedGates(present?.workConfiguration?.featureGates, said.work)
  const addOnGates = mergedGates(present?.addOnManagerConfiguration?.featureGates, said.addOnManager)
  const keepDrivers = present !== undefined && !given.has('registration-auth')
  const sizing = sizingOf(flags)
  const drivers = keepDrivers ? registration?.registrationDrivers : driversOf(flags, hubArn)
  return {
    ...present,
    registrationConfiguration: {
      ...registration,
      ...(drivers && { registrationDrivers: drivers }),
      ...(registrationGates && { featureGates: registrationGates }),
    },
    ...(workGates && { workConfiguration: { ...present?.workConfiguration, featureGates: workGates } }),
    ...(addOnGates && {
      addOnManagerConfiguration: { ...present?.addOnManagerConfiguration, featureGates: addOnGates },
    }),
    ...(sizing && { resourceRequirement: sizing }),
    ...(given.has('grpc-server') && { serverConfiguration: { ...present?.serverConfiguration, ...grpcServer(flags) } }),
  } as Spec
}

const driversOf = (flags: HubValues, hubArn: string | undefined): Drivers =>
  strategiesOf(flags['registration-auth']).map((authType) => {
    const identities = (
      flag: 'auto-approved-csr-identities' | 'auto-approved-arn-patterns' | 'auto-approved-grpc-identities',
    ) => (flags[flag].length > 0 ? { autoApprovedIdentities: flags[flag] } : undefined)
    if (authType === 'awsirsa') {
      const tags = flags['aws-resource-tags']
      const patterns = identities('auto-approved-arn-patterns')
      return {
        authType,
        awsirsa: { ...(hubArn && { hubClusterArn: hubArn }), ...(tags.length > 0 && { tags }), ...patterns },
      }
    }
    if (authType === 'grpc') return { authType, grpc: identities('auto-approved-grpc-identities') ?? {} }
    const csr = identities('auto-approved-csr-identities')
    return { authType, ...(csr && { csr }) }
  })

const grpcServer = (flags: HubValues) => {
  const type = flags['grpc-endpoint-type']
  const host = { host: flags['grpc-server'] }
  return { endpointsExposure: [{ protocol: 'grpc', grpc: { type, [type]: host } }] }
}
