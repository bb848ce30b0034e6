import { annotation, type Klusterlet } from '../api/index.ts'
import { closest } from '../kube/words/index.ts'
import { UsageError, type Flags, type ValuesOf } from '../main/flags.ts'
import { checkedHashes } from './ca.ts'
import { checkedEksArn, isEksArn } from './eks.ts'
import { endpointOf } from './grpc-hub.ts'
import { gatesBy, installFlags, keyAndValue, mergedGates, sizingOf } from './install-flags.ts'
import { strategiesOf } from './hub-spec.ts'
import { checkedName } from './names.ts'

type Spec = NonNullable<Klusterlet['spec']>

/** What a person says about a cluster that is to join. */
export const joinFlags = {
  'hub-token': { help: 'The token that get token printed; see also the next', default: '', value: 'TOKEN' },
  'hub-token-file': {
    help: 'A file with the token, or - for stdin; else $LANYARD_HUB_TOKEN',
    default: '',
    value: 'FILE',
  },
  'hub-apiserver': { help: 'The address of the hub', default: '', value: 'URL' },
  'cluster-name': { help: 'The name that this cluster gets on the hub', default: '', value: 'NAME' },
  'ca-hash': { help: "The hub's CA by its hash, sha256:…, as get token prints it", default: [], value: 'HASH' },
  'ca-file': { help: "The hub's CA, as PEM", default: '', value: 'FILE' },
  'trust-on-first-use': {
    help: "Take the hub's CA as it comes: whoever stands in between is believed",
    default: false,
  },
  wait: { help: 'Until the hub knows of this cluster', default: false },
  'registration-auth': {
    help: 'How this cluster proves who it is: csr, aws-irsa or grpc',
    default: 'csr',
    value: 'STRATEGY',
    choices: ['csr', 'aws-irsa', 'awsirsa', 'grpc'],
  },
  'eks-hub-cluster-arn': {
    help: 'With aws-irsa: the ARN of the hub',
    default: '',
    value: 'ARN',
    aliases: ['hub-cluster-arn'],
  },
  'managed-cluster-arn': {
    help: 'With aws-irsa: the ARN of this cluster, where the kubeconfig does not say it',
    default: '',
    value: 'ARN',
  },
  'grpc-server': {
    help: 'With grpc: the endpoint of the hub; --hub-apiserver is then only for add-ons, and may be left out',
    default: '',
    value: 'HOST:PORT',
  },
  'grpc-ca-file': { help: 'With grpc: the CA of the endpoint, as PEM', default: '', value: 'FILE' },
  'force-internal-endpoint-lookup': {
    help: 'The agent uses the address in the cluster-info of the hub',
    default: false,
  },
  'proxy-url': { help: 'A proxy on the way to the hub', default: '', value: 'URL' },
  mode: {
    help: 'Where the agent runs: here, or here for another cluster (hosted)',
    default: 'default',
    short: 'm',
    value: 'MODE',
    choices: ['default', 'hosted'],
  },
  'managed-cluster-kubeconfig': {
    help: 'With hosted: the way to the cluster that is managed; the next time it may be left out',
    default: '',
    value: 'FILE',
  },
  singleton: { help: 'One process for everything, which is what we always run', default: false },
  'client-cert-expiration-seconds': {
    help: 'Lifetime of certificates to ask for; 0 leaves it to the hub',
    default: 0,
    value: 'N',
  },
  'addon-kubeclient-registration-auth': {
    help: 'How add-ons prove who they are: csr or token',
    default: 'csr',
    value: 'HOW',
    choices: ['csr', 'token'],
  },
  'addon-token-expiration-seconds': { help: 'With token: lifetime; 0 is the default', default: 0, value: 'N' },
  'klusterlet-annotation': { help: 'key=value for the ManagedCluster, repeated', default: [], value: 'K=V' },
  'feature-gates': { help: 'Gate=true,Other=false', default: [], value: 'LIST' },
  'work-role': {
    help: 'The ClusterRole that works are applied with; cluster-admin unless told',
    default: '',
    value: 'NAME',
  },
  force: { help: 'Also where this cluster is a hub itself', default: false },
  'create-namespace': { help: 'Always so', default: true, hidden: true },
  ...installFlags,
} as const satisfies Flags

export type JoinValues = ValuesOf<typeof joinFlags>

const gates = {
  ClusterClaim: 'registration',
  AddonManagement: 'registration',
  ClusterProperty: 'registration',
  MultipleHubs: 'registration',
  V1beta1CSRAPICompatibility: 'registration',
  ExecutorValidatingCaches: 'work',
  RawFeedbackJsonString: 'work',
} as const

/** What can be checked before anybody is asked. */
export const checkJoinFlags = (flags: JoinValues, given: ReadonlySet<string>): void => {
  const isGrpc = strategiesOf([flags['registration-auth']]).includes('grpc')
  const needed = isGrpc
    ? (['grpc-server', 'grpc-ca-file', 'cluster-name'] as const)
    : (['hub-apiserver', 'cluster-name'] as const)
  for (const flag of needed)
    if (!flags[flag]) throw new UsageError(`--${flag} is missing: ${joinFlags[flag].help.toLowerCase()}`)
  checkedName('--cluster-name', flags['cluster-name'])
  for (const flag of ['grpc-server', 'grpc-ca-file'])
    if (!isGrpc && given.has(flag)) throw new UsageError(`--${flag} needs --registration-auth grpc`)
  if (isGrpc) endpointOf(flags['grpc-server'])
  const url = flags['hub-apiserver']
  if ((url || !isGrpc) && (!URL.canParse(url) || new URL(url).protocol !== 'https:'))
    throw new UsageError(
      `--hub-apiserver ${JSON.stringify(url.slice(0, 200))} is not an address such as https://hub.example.com:6443`,
    )
  checkedHashes(flags['ca-hash'])
  const ways = ['ca-file', 'ca-hash', 'trust-on-first-use'].filter((flag) => given.has(flag))
  if (ways.length > 1) throw new UsageError(`--${ways.join(' and --')} say different things: give one of them`)
  gatesBy(flags['feature-gates'], gates, closest)
  sizingOf(flags)
  const isIrsa = strategiesOf([flags['registration-auth']]).includes('awsirsa')
  if (isIrsa && !flags['eks-hub-cluster-arn'])
    throw new UsageError(
      '--eks-hub-cluster-arn is missing: aws-irsa needs the ARN of the hub, arn:aws:eks:REGION:ACCOUNT:cluster/NAME',
    )
  for (const flag of ['eks-hub-cluster-arn', 'managed-cluster-arn'] as const) {
    if (!flags[flag]) continue
    if (!isIrsa) throw new UsageError(`--${flag} needs --registration-auth aws-irsa`)
    checkedEksArn(`--${flag}`, flags[flag])
  }
  if (flags.mode !== 'hosted' && flags['managed-cluster-kubeconfig'])
    throw new UsageError('--managed-cluster-kubeconfig needs --mode hosted')
  if (flags['addon-token-expiration-seconds'] && flags['addon-kubeclient-registration-auth'] !== 'token')
    throw new UsageError('--addon-token-expiration-seconds needs --addon-kubeclient-registration-auth token')
  annotationsOf(flags)
}

/** This cluster's own ARN: told, or the name by which the kubeconfig calls it. */
export const managedArnOf = (flags: JoinValues, signs: { clusterName: string; context: string }): string => {
  const arn = flags['managed-cluster-arn'] || [signs.clusterName, signs.context].find(isEksArn)
  if (arn) return arn
  throw new UsageError(
    '--managed-cluster-arn is missing: aws-irsa needs the ARN of this cluster, and the kubeconfig does not say it',
  )
}

const annotationsOf = (flags: JoinValues): Record<string, string> =>
  Object.fromEntries(
    flags['klusterlet-annotation'].map((one) => {
      const [key, value] = keyAndValue('--klusterlet-annotation', one)
      return [key.startsWith(`${annotation.agentPrefix}/`) ? key : `${annotation.agentPrefix}/${key}`, value]
    }),
  )

/** The Klusterlet's spec from flags over what is there, so that joining again changes only what was said. */
export const klusterletSpec = (
  flags: JoinValues,
  given: ReadonlySet<string>,
  about: {
    present?: Spec | undefined
    managedArn?: string | undefined
    namespace: string
    externalUrl?: string | undefined
  },
): Spec => {
  const { present } = about
  const isNew = present === undefined
  const registration = present?.registrationConfiguration
  const said = gatesBy(flags['feature-gates'], gates, closest)
  const registrationGates = mergedGates(registration?.featureGates, said.registration)
  const workGates = mergedGates(present?.workConfiguration?.featureGates, said.work)
  const [authType] = strategiesOf([flags['registration-auth']])
  const hosted = flags.mode === 'hosted'
  const mode = flags.singleton ? (hosted ? 'SingletonHosted' : 'Singleton') : hosted ? 'Hosted' : 'Default'
  const sizing = sizingOf(flags)
  const addOns = flags['addon-kubeclient-registration-auth']
  const lifetime = flags['addon-token-expiration-seconds']
  return {
    ...present,
    clusterName: flags['cluster-name'],
    namespace: about.namespace,
    ...((isNew || given.has('mode') || given.has('singleton')) && { deployOption: { mode } }),
    ...(about.externalUrl && { externalServerURLs: [{ url: about.externalUrl }] }),
    ...(sizing && { resourceRequirement: sizing }),
    registrationConfiguration: {
      ...registration,
      ...((isNew || given.has('registration-auth')) && {
        registrationDriver: {
          authType,
          ...(authType === 'awsirsa' && {
            awsIrsa: { hubClusterArn: flags['eks-hub-cluster-arn'], managedClusterArn: about.managedArn },
          }),
        },
      }),
      ...(given.has('client-cert-expiration-seconds') && {
        clientCertExpirationSeconds: flags['client-cert-expiration-seconds'],
      }),
      ...(given.has('klusterlet-annotation') && {
        clusterAnnotations: { ...registration?.clusterAnnotations, ...annotationsOf(flags) },
      }),
      ...(given.has('addon-kubeclient-registration-auth') && {
        addOnKubeClientRegistrationDriver: {
          authType: addOns,
          ...(addOns === 'token' && lifetime > 0 && { token: { expirationSeconds: lifetime } }),
        },
      }),
      ...(registrationGates && { featureGates: registrationGates }),
    },
    ...(workGates && { workConfiguration: { ...present?.workConfiguration, featureGates: workGates } }),
  } as Spec
}
