import { annotation, type Klusterlet } from '../../api/index.ts'
import { flag, newReading, readGates, type GateRule, type Reading } from '../reading.ts'

export type KlusterletSpec = NonNullable<Klusterlet['spec']>

/** Gates of the field, and what they are here: the agent has no switches of its own. */
export const agentGates: Readonly<Record<string, GateRule>> = {
  ClusterClaim: 'on',
  AddonManagement: 'on',
  // Several bootstrap secrets are several hubs, whatever the gate says; without them it means nothing.
  MultipleHubs: 'on',
  ExecutorValidatingCaches: 'off',
  RawFeedbackJsonString: 'off',
  ClusterProperty: 'off',
  V1beta1CSRAPICompatibility: 'off',
}

/** Whether the agent runs in another cluster than the one it manages. */
export const isHosted = (spec: KlusterletSpec): boolean =>
  spec.deployOption?.mode === 'Hosted' || spec.deployOption?.mode === 'SingletonHosted'

/** The image of the agent: one process does what these fields name two for. */
export const agentImage = (spec: KlusterletSpec, fallback: string): string =>
  spec.imagePullSpec || spec.registrationImagePullSpec || fallback

/** What a Klusterlet's spec means: the flags of `lanyard agent`, and what cannot be done. */
export const readAgentSpec = (
  spec: KlusterletSpec,
  supported: { image: string; drivers: readonly string[] },
): Reading => {
  const reading = newReading()
  const { flags, ignored, refused, badGates } = reading
  const registration = spec.registrationConfiguration ?? {}
  const image = agentImage(spec, supported.image)
  for (const field of ['registrationImagePullSpec', 'workImagePullSpec'] as const)
    if (spec[field] && spec[field] !== image)
      ignored.push(`${field}: the agent is one process, with the image ${image}`)

  flags.push(...flag('cluster-name', spec.clusterName))
  flags.push(...driverFlags(registration, supported.drivers, refused))
  flags.push(...flag('client-cert-expiration-seconds', registration.clientCertExpirationSeconds || undefined))
  flags.push(
    ...flag(
      'spoke-external-server-urls',
      spec.externalServerURLs?.map(({ url }) => url),
    ),
  )
  if (spec.externalServerURLs?.some(({ caBundle }) => caBundle))
    ignored.push('externalServerURLs[].caBundle: only the address reaches the hub')
  flags.push(...annotationFlags(registration.clusterAnnotations, ignored))
  if (Object.keys(registration.clusterLabels ?? {}).length > 0)
    ignored.push('registrationConfiguration.clusterLabels: labels decide who may use a cluster, so the hub sets them')
  flags.push(...bootstrapFlags(registration.bootstrapKubeConfigs, refused))
  const claims = registration.clusterClaimConfiguration
  flags.push(...flag('max-custom-cluster-claims', claims?.maxCustomClusterClaims))
  flags.push(...flag('reserved-cluster-claim-suffixes', claims?.reservedClusterClaimSuffixes))
  flags.push(...workFlags(spec.workConfiguration ?? {}, { ignored, refused }))
  // One process for everything, add-ons of ours too.
  if (spec.deployOption?.mode?.startsWith('Singleton')) flags.push('--service-accounts')
  for (const gates of [registration.featureGates, spec.workConfiguration?.featureGates])
    readGates(gates, agentGates, badGates)
  return reading
}

type Registration = NonNullable<KlusterletSpec['registrationConfiguration']>

const driverFlags = (registration: Registration, known: readonly string[], refused: string[]): string[] => {
  const { authType = 'csr', awsIrsa } = registration.registrationDriver ?? {}
  if (!known.includes(authType))
    refused.push(
      `registrationConfiguration.registrationDriver.authType ${authType}: this version knows ${known.join(', ')}`,
    )
  const addOns = registration.addOnKubeClientRegistrationDriver
  return [
    ...flag('registration-auth', authType),
    ...(authType === 'awsirsa'
      ? [...flag('hub-cluster-arn', awsIrsa?.hubClusterArn), ...flag('managed-cluster-arn', awsIrsa?.managedClusterArn)]
      : []),
    ...flag('addon-kubeclient-registration-auth', addOns?.authType),
    ...flag('addon-token-expiration-seconds', addOns?.token?.expirationSeconds || undefined),
  ]
}

const annotationFlags = (annotations: Record<string, string> | undefined, ignored: string[]): string[] => {
  const entries = Object.entries(annotations ?? {})
  const isAgents = ([key]: [string, string]): boolean => key.startsWith(annotation.agentPrefix)
  for (const [key] of entries.filter((entry) => !isAgents(entry)))
    ignored.push(`registrationConfiguration.clusterAnnotations ${key}: keys begin with ${annotation.agentPrefix}`)
  return entries.filter(isAgents).flatMap(([key, value]) => {
    if (!value.includes(',')) return [`--cluster-annotations=${key}=${value}`]
    ignored.push(`registrationConfiguration.clusterAnnotations ${key}: its value has a comma`)
    return []
  })
}

const bootstrapFlags = (hubs: Registration['bootstrapKubeConfigs'], refused: string[]): string[] => {
  if (hubs?.type !== 'LocalSecrets') return []
  const names = hubs.localSecretsConfig?.kubeConfigSecrets.map(({ name }) => name) ?? []
  if (names.length === 0)
    refused.push(
      'registrationConfiguration.bootstrapKubeConfigs: type LocalSecrets needs localSecretsConfig.kubeConfigSecrets',
    )
  return [
    ...flag('bootstrap-kubeconfig-secret', names),
    ...flag('hub-connection-timeout-seconds', hubs.localSecretsConfig?.hubConnectionTimeoutSeconds),
  ]
}

const workFlags = (
  work: NonNullable<KlusterletSpec['workConfiguration']>,
  { ignored, refused }: Pick<Reading, 'ignored' | 'refused'>,
): string[] => {
  if (work.statusSyncInterval)
    ignored.push('workConfiguration.statusSyncInterval: what works applied is watched, and reported when it changes')
  const grace = work.appliedManifestWorkEvictionGracePeriod
  if (!grace) return []
  const seconds = durationSeconds(grace)
  if (seconds === undefined)
    refused.push(`workConfiguration.appliedManifestWorkEvictionGracePeriod ${grace}: write it as 90s, 30m or 1h30m`)
  return flag('appliedmanifestwork-eviction-grace-seconds', seconds)
}

const unitSeconds: Record<string, number> = { h: 3600, m: 60, s: 1, ms: 0.001 }

/** A duration as Go writes it, such as `1h30m`; undefined when it is none. */
export const durationSeconds = (text: string): number | undefined => {
  if (!/^(\d+(\.\d+)?(h|ms|m|s))+$/.test(text)) return undefined
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s)/g)]
  return Math.round(parts.reduce((sum, [, count, unit]) => sum + Number(count) * unitSeconds[unit!]!, 0))
}
