import { conditionType, type ManifestWork } from '../../api/index.ts'
import {
  Available,
  CertificateRotated,
  ClockSynced,
  Joined,
  secretKey,
  secretName,
  silenceMs,
} from '../../registration/contract.ts'
import { findCondition, isTrue } from '../../runtime/index.ts'
import { acceptAgain, forgetCredential, joinAgain, kubectl, startAgentAgain } from './advice.ts'
import { hasCredential, isRefused, validityIn } from './credential.ts'
import { known, perhaps, unseen, type Advice, type Rule, type Step } from './faults.ts'
import { isAlive, silentMs, refuseElsewhere } from './life.ts'
import { currentRequest, openRequests, saysOf } from './requests.ts'
import { clusterOf, hubOf, isLetIn, managedOf, notLetIn, type Snapshot } from './snapshot.ts'

type Of = Rule<Snapshot>

/** A signer that works needs a moment. */
const signingMs = 30_000

/** Whether the cluster waits for a certificate. One that is heard of has one, and the hub answers its renewals by itself. */
const waitsForCertificate = (s: Snapshot): boolean => {
  if (!isLetIn(s)) return unseen(notLetIn)
  if (s.managed && 'is' in s.managed.credential) return !hasCredential(s)
  return !isAlive(s)
}

const isAnswered: Of = (s) => {
  if (!waitsForCertificate(s)) return undefined
  const csr = currentRequest(s)
  if (!csr) return undefined
  const name = csr.metadata.name!
  const [denied, failed, approved] = (['Denied', 'Failed', 'Approved'] as const).map((type) => saysOf(csr, type))
  const reason = denied ?? failed
  const said = [reason?.reason, reason?.message].filter(Boolean).join(': ') || 'no reason was given'
  const again = kubectl(s, 'hub', 'delete', 'csr', name)
  if (denied)
    return {
      fault: 'csr-denied',
      why: `certificate request ${name} was denied (${said}); when it is gone, the agent asks anew`,
      ...again,
    }
  if (failed)
    return {
      fault: 'csr-failed',
      why: `the signer of the hub could not sign certificate request ${name} (${said}); when it is gone, the agent asks anew`,
      ...again,
    }
  if (!approved)
    return {
      fault: 'csr-pending',
      why: `cluster ${s.name} is let in, but nobody has approved its certificate request ${name}`,
      ...acceptAgain(s),
    }
  const waited = s.now - Date.parse(approved.lastUpdateTime ?? approved.lastTransitionTime ?? '')
  if (csr.status?.certificate || !(waited > signingMs)) return undefined
  return {
    fault: 'csr-failed',
    why: `certificate request ${name} was approved and is not signed: the hub has no working signer for client certificates (its kube-controller-manager; EKS has none, there join with --registration-auth aws-irsa)`,
    ...kubectl(s, 'hub', '-n', 'kube-system', 'get', 'pods', '-l', 'component=kube-controller-manager'),
  }
}

/** What brings an agent without a credential on. */
const credentialAdvice = (s: Snapshot): Advice => {
  const way = perhaps(s.managed?.way)
  if (way?.kind !== 'open') return joinAgain(s)
  return openRequests(s).length > 0 ? acceptAgain(s) : startAgentAgain(s)
}

const secretOf = (s: Snapshot): string => `secret ${managedOf(s).namespace}/${secretName.hub}`

const isSaved: Of = (s) => {
  refuseElsewhere(s)
  const data = known(managedOf(s).credential)
  const cluster = clusterOf(s)
  const wasThere = cluster !== undefined && isTrue(cluster, Joined.type)
  return (
    !data?.[secretKey.kubeconfig] &&
    wasThere && {
      fault: 'hub-secret-missing',
      why: `cluster ${s.name} had joined, and ${secretOf(s)} with its credential is gone: the agent has to be given a new one`,
      ...credentialAdvice(s),
    }
  )
}

const isValid: Of = (s) => {
  const data = known(managedOf(s).credential)
  const validity = data?.[secretKey.kubeconfig] ? validityIn(data) : undefined
  if (!validity) return undefined
  const { from, until } = validity
  const ends = until > 0 ? new Date(until).toISOString() : 'an unknown time: it cannot be read'
  if (s.now >= until)
    return {
      fault: 'certificate-expired',
      why: `the certificate of cluster ${s.name} in ${secretOf(s)} ended at ${ends}, and was not renewed`,
      ...credentialAdvice(s),
    }
  // Agents renew when three quarters to four fifths are over.
  if (s.now <= from + (until - from) * 0.85) return undefined
  return {
    fault: 'certificate-expiring',
    why: `the certificate of cluster ${s.name} ends at ${ends}, and its renewal is overdue`,
    ...startAgentAgain(s),
  }
}

/** Without a look into the secret, what the agent last said of its renewal has to do. */
const isRotated: Of = (s) => {
  const cluster = clusterOf(s)
  const said = cluster && findCondition(cluster, CertificateRotated.type)
  return said?.status === 'False' && { fault: 'certificate-expiring', why: said.message, ...startAgentAgain(s) }
}

const isTaken: Of = (s) => {
  const refused = hasCredential(s) && isRefused(s) && !isAlive(s)
  return (
    refused && {
      fault: 'credential-refused',
      why: `the hub does not know the credential in ${secretOf(s)} any more: its CA was replaced, or it is another hub`,
      ...(perhaps(managedOf(s).way)?.kind === 'open' ? forgetCredential(s) : joinAgain(s)),
    }
  )
}

const isHeard: Of = (s) => {
  const cluster = clusterOf(s)
  if (!cluster || !isLetIn(s)) return unseen(notLetIn)
  if (!isTrue(cluster, Joined.type)) return unseen('the cluster has not joined yet')
  const limit = silenceMs(cluster.spec.leaseDurationSeconds)
  if (s.hub) known(s.hub.leases)
  const silent = silentMs(s)
  const available = findCondition(cluster, Available.type)
  const stale = silent === undefined ? available?.status === 'Unknown' : silent > limit
  if (stale)
    return {
      fault: 'lease-stale',
      why: `nothing was heard of cluster ${s.name} for ${silent === undefined ? 'a while' : `${Math.round(silent / 1000)} s`}; ${limit / 1000} s are allowed`,
      ...startAgentAgain(s),
    }
  return (
    available?.status === 'False' && {
      fault: 'lease-stale',
      why: `the agent of cluster ${s.name} lives, and says that the cluster does not: ${available.message}`,
      ...kubectl(s, 'managed', 'get', '--raw', '/readyz?verbose'),
    }
  )
}

const clocksAgree: Of = (s) => {
  const cluster = clusterOf(s)
  const said = cluster && findCondition(cluster, ClockSynced.type)
  return (
    said?.status === 'False' && {
      fault: 'clock-skew',
      why: `${said.message} Let a time service keep the clock, on the nodes of both clusters`,
      on: 'managed',
      command: 'timedatectl set-ntp true',
    }
  )
}

const worksApply: Of = (s) => {
  const works = known(hubOf(s).works).filter(({ metadata }) => metadata.namespace === s.name)
  const failing = works.filter((work) => findCondition(work, conditionType.manifestWork.applied)?.status === 'False')
  const [first] = failing
  if (!first) return undefined
  const name = first.metadata.name!
  const others = failing.length > 1 ? `; ${failing.length - 1} more works fail` : ''
  const why = `work ${name}: ${findCondition(first, conditionType.manifestWork.applied)!.message}${others}`
  const homeless = namespaceFor(s, first)
  if (homeless)
    return {
      fault: 'work-failing',
      why: `${why}. Its namespace ${homeless} is not on the managed cluster, and not in the work`,
      ...kubectl(s, 'managed', 'create', 'namespace', homeless),
    }
  return { fault: 'work-failing', why, ...kubectl(s, 'hub', '-n', s.name, 'edit', 'manifestwork', name) }
}

/** The namespace that a failed manifest needs and that is not there. */
const namespaceFor = ({ managed }: Snapshot, { status }: ManifestWork): string | undefined => {
  const present = perhaps(managed?.namespaces)
  if (!present) return undefined
  const failed = (status?.resourceStatus?.manifests ?? []).filter(({ conditions }) =>
    conditions?.some((one) => one.type === conditionType.manifest.applied && one.status === 'False'),
  )
  return failed
    .map(({ resourceMeta }) => resourceMeta.namespace)
    .find((one) => one !== undefined && one !== '' && !present.has(one))
}

/** From the certificate to the works: what has to go on, for as long as the cluster belongs to the hub. */
export const runningSteps: readonly Step<Snapshot>[] = [
  { step: 'the certificate request', rules: [isAnswered] },
  { step: 'the credential', rules: [isSaved, isValid, isTaken, isRotated] },
  { step: 'the heartbeat', rules: [isHeard] },
  { step: 'the clocks', rules: [clocksAgree] },
  { step: 'the works', rules: [worksApply] },
]
