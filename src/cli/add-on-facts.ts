import { conditionType, type ManagedClusterAddOn } from '../api/index.ts'
import { installNamespaceOf, kubeClientOf } from '../addons/contract.ts'
import { findCondition } from '../runtime/index.ts'
import { ageOf } from './age.ts'

const type = conditionType.addOn

/** What is told of an add-on on one cluster. */
export interface AddOnFacts {
  readonly name: string
  readonly available: string
  readonly namespace: string
  /** How it proves who it is to the hub; empty when it needs no credential, or its agent has not said. */
  readonly driver: string
  readonly subject: string
  /** When its credential for the hub ends, RFC 3339. */
  readonly expires: string
  /** Who signs its other certificates. */
  readonly signers: readonly string[]
  /** What somebody has to look at. */
  readonly problem: string
}

export const addOnFacts = (addOn: ManagedClusterAddOn): AddOnFacts => {
  const item = kubeClientOf(addOn)
  const { driver = item ? 'csr' : '', subject } = item?.kubeClient ?? {}
  return {
    name: addOn.metadata.namespace!,
    available: findCondition(addOn, type.available)?.status ?? 'Unknown',
    namespace: installNamespaceOf(addOn),
    driver,
    subject: subject?.user ?? '',
    expires: item ? expiryOf(addOn, driver) : '',
    signers: (addOn.status?.registrations ?? []).flatMap(({ customSigner }) => customSigner?.signerName ?? []),
    problem: problemOf(addOn, driver),
  }
}

/** The agent says when a credential ends in the condition of its driver; nothing else on the hub knows. */
const expiryOf = (addOn: ManagedClusterAddOn, driver: string): string => {
  const types = driver === 'token' ? [type.tokenRefreshed, type.tokenRefreshedElsewhere] : [type.certificateRotated]
  for (const one of types) {
    const [, time = ''] = /expires at (\S+?)[.,;]?(?:\s|$)/.exec(findCondition(addOn, one)?.message ?? '') ?? []
    if (!Number.isNaN(Date.parse(time))) return time
  }
  return ''
}

/** In the order in which an add-on comes up: the first that is wrong explains the rest. */
const problemOf = (addOn: ManagedClusterAddOn, driver: string): string => {
  if (addOn.metadata.deletionTimestamp) return 'is being removed'
  const degraded = findCondition(addOn, type.degraded)
  if (degraded?.status === 'True') return degraded.message
  const ofDriver =
    driver === 'token'
      ? [type.tokenInfrastructureReady, type.tokenRefreshed, type.tokenRefreshedElsewhere]
      : [type.certificateRotated]
  const steps = [
    type.configured,
    type.registrationServed,
    type.registrationApplied,
    ...(driver ? ofDriver : []),
    type.manifestApplied,
    type.available,
  ]
  const wrong = steps.map((one) => findCondition(addOn, one)).find((one) => one?.status === 'False')
  return wrong ? `${wrong.type}: ${wrong.message}` : ''
}

/** `in 30d`, or that it is over. */
export const expiryText = (expires: string, now: number): string => {
  if (!expires) return ''
  const ends = Date.parse(expires)
  return ends <= now ? 'expired' : `in ${ageOf(new Date(now).toISOString(), ends)}`
}
