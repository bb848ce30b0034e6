import type { ManagedCluster } from '../../../api/index.ts'
import {
  AwsError,
  failedFor,
  Gate,
  type AwsClient,
  type CredentialSource,
  type EksCluster,
} from '../../../aws/index.ts'
import type { Api } from '../../../kube/index.ts'
import { sleep, stalled, systemClock, waiting, type Clock, type ReconcileError } from '../../../runtime/index.ts'
import { accessEntriesOf, type AccessEntries } from './access-entry.ts'
import { AwsAuth } from './aws-auth.ts'
import { claimOf } from './claim.ts'
import { explained } from './failures.ts'
import { ensureRole, iamOf, removeRole, type Iam } from './iam.ts'
import { going, isGoing, recordsIn, type GrantRecord, type Records } from './record.ts'
import { bothMappingsMs, digestOf, mappingOf, wantedFor, type Access, type Wanted } from './wanted.ts'

export interface GrantOptions {
  /** The hub, as somebody who may write records, and `aws-auth` where that is used. */
  client: Api
  /** Where records are kept: the hub's own namespace. */
  namespace: string
  hub: EksCluster
  aws: AwsClient
  /** Of whoever makes the IAM objects: the administrator who accepts a cluster, or the hub's creator role. */
  credentials: CredentialSource
  tags?: Readonly<Record<string, string>> | undefined
  /** Found out from EKS, or what the record says, unless forced. */
  access?: Access | undefined
  awsAuth?: AwsAuth | undefined
  bothMappingsMs?: number | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
}

/** How things stand before a grant. */
export interface Outlook {
  readonly wanted: Wanted
  readonly access: Access
  /** EKS did not say how this hub maps roles, and nothing else did. */
  readonly isAssumed: boolean
  readonly record: GrantRecord | undefined
  /** All is in place already, as far as the record says. */
  readonly isGranted: boolean
}

/** Gives clusters their access to a hub by AWS IAM, and takes it away. The hub's controller and `clusteradm accept` do it alike. */
export interface Grants {
  readonly records: Records
  readonly awsAuth: AwsAuth
  /** Throws what is wrong with the cluster's claim. */
  wanted(cluster: ManagedCluster): Wanted
  /** Asks EKS how the hub maps roles now. From then on clusters that are mapped otherwise are not `isGranted`. */
  lookAtMode(signal: AbortSignal): Promise<void>
  /** How a cluster with this record is to be mapped, as far as we know without asking. */
  accessOf(record: GrantRecord): Access
  /** Whether a record says that all of this is in place. */
  isGranted(record: GrantRecord | undefined, wanted: Wanted, clusterUid: string | undefined): boolean
  /** What a grant would make. Nothing is changed; throws what speaks against it. */
  look(cluster: ManagedCluster, signal: AbortSignal): Promise<Outlook>
  /**
   * Makes what is missing, and repairs what differs. May be called again at any time, and after a crash at any point. One that is
   * moved has both mappings at first; a later call takes the old one away.
   */
  grant(cluster: ManagedCluster, signal: AbortSignal): Promise<GrantRecord>
  /** Takes away the access, then the role with its policies, then the record. */
  revoke(record: GrantRecord, signal: AbortSignal): Promise<void>
}

/** Calls to one service of the hub's account at the same time. IAM throttles early, and for the whole account. */
const width = 8
const mostTries = 4
/** Every EKS cluster has this one, unless it says otherwise. */
const unlessKnown: Access = 'aws-auth'
/** Whoever has to wait longer gives way to other clusters. */
const longestWaitMs = 2000

export const newGrants = (options: GrantOptions): Grants => {
  const { client, namespace, hub, aws, credentials, tags = {}, clock = systemClock, random = Math.random } = options
  const records = recordsIn(client, namespace)
  const awsAuth = options.awsAuth ?? new AwsAuth(client)
  const gates = { iam: new Gate({ clock, random, width }), eks: new Gate({ clock, random, width }) }
  /** What EKS said last; undefined while nobody has asked, or where we may not know. */
  let mode: Access | undefined
  /** Where EKS does not say, asking again for each cluster would not help: the next look does. */
  let isAsked = false
  let asking: Promise<Access | undefined> | undefined

  const callers = async (signal: AbortSignal): Promise<{ iam: Iam; eks: AccessEntries }> => {
    const who = await credentials(signal)
    const iam = iamOf(aws, hub.region, who, signal)
    const eks = accessEntriesOf(aws, hub, who, signal)
    return {
      iam: (action, parameters) => patiently(gates.iam, () => iam(action, parameters), signal),
      eks: {
        mode: () => patiently(gates.eks, () => eks.mode(), signal),
        set: (...given) => patiently(gates.eks, () => eks.set(...given), signal),
        remove: (roleArn) => patiently(gates.eks, () => eks.remove(roleArn), signal),
      },
    }
  }

  /** Each step is tried a few times: of an AWS that fails every third call, some are always lost in one go. */
  const patiently = async <T>(gate: Gate, call: () => Promise<T>, signal: AbortSignal): Promise<T> => {
    for (let tries = 1; ; tries++) {
      try {
        return await gate.run(call)
      } catch (error) {
        const waitMs = error instanceof AwsError && error.policy.kind === 'wait' ? error.policy.afterMs : 500
        const isPassing = failedFor(error, 'Unavailable', 'Throttled', 'Unreachable')
        if (!isPassing || tries === mostTries || waitMs > longestWaitMs) throw error
        await sleep(clock, waitMs, signal)
      }
    }
  }

  const accessOf = (record: GrantRecord): Access => options.access ?? mode ?? record.access.at(-1) ?? unlessKnown

  /** Undefined where EKS does not say it, and nothing else does. */
  const accessFor = async (record: GrantRecord | undefined, eks: AccessEntries): Promise<Access | undefined> =>
    record ? accessOf(record) : (options.access ?? mode ?? (isAsked ? undefined : await askMode(eks)))

  /** One call for all who want to know at the same time. That we may not ask today is no reason to move anybody. */
  const askMode = (eks: AccessEntries): Promise<Access | undefined> => {
    asking ??= eks
      .mode()
      .then((found) => {
        isAsked = true
        return (mode = found ?? mode)
      })
      .finally(() => (asking = undefined))
    return asking
  }

  const unmap = (roleArn: string, access: Access, eks: AccessEntries, signal: AbortSignal): Promise<void> =>
    access === 'aws-auth' ? awsAuth.remove(roleArn, signal) : eks.remove(roleArn)

  const wanted = (cluster: ManagedCluster): Wanted => {
    const { claim, refusal } = claimOf(cluster, hub)
    if (refusal) throw stalled(refusal.reason, refusal)
    return wantedFor(cluster.metadata.name!, claim, tags)
  }

  const revoke = async (record: GrantRecord, signal: AbortSignal): Promise<void> => {
    try {
      // From here on it must not pass for complete, should the cluster be accepted again after a crash.
      const open = isGoing(record) ? record : await records.update(record, { granted: going }, signal)
      const mapped = record.access.length ? record.access : (['aws-auth'] as const)
      if (mapped.includes('aws-auth')) await awsAuth.remove(record.roleArn, signal)
      const { iam, eks } = await callers(signal)
      for (const access of mapped) if (access !== 'aws-auth') await eks.remove(record.roleArn)
      await removeRole(iam, record.roleName)
      await records.remove(open, signal)
    } catch (error) {
      throw explained(error, { cluster: record.cluster, deed: `remove role ${record.roleArn}`, hub })
    }
  }

  const recordFor = async (cluster: ManagedCluster, want: Wanted, signal: AbortSignal) => {
    const { name = '', uid = '' } = cluster.metadata
    const mine = await records.of(name, signal)
    for (const other of mine.filter(({ roleName }) => roleName !== want.roleName)) {
      if (!isGoing(other) && other.clusterUid === uid) throw changed(want, other)
      await revoke(other, signal)
    }
    const record =
      mine.find(({ roleName }) => roleName === want.roleName) ?? (await records.find(want.roleName, signal))
    if (record && record.cluster !== name) throw taken(want, record)
    return record
  }

  const isGranted: Grants['isGranted'] = (record, want, clusterUid) =>
    record !== undefined &&
    record.cluster === want.cluster &&
    record.clusterUid === clusterUid &&
    record.granted === digestOf(want, accessOf(record))

  const lookAtMode = async (signal: AbortSignal): Promise<void> => {
    if (!options.access) await askMode((await callers(signal)).eks)
  }

  const look = async (cluster: ManagedCluster, signal: AbortSignal): Promise<Outlook> => {
    const want = wanted(cluster)
    const { name = '', uid } = cluster.metadata
    const others = (await records.of(name, signal)).filter(({ roleName }) => roleName !== want.roleName)
    const other = others.find((one) => !isGoing(one) && one.clusterUid === uid)
    if (other) throw changed(want, other)
    const record = await records.find(want.roleName, signal)
    if (record && record.cluster !== name) throw taken(want, record)
    const found = await accessFor(record, (await callers(signal)).eks)
    const access = found ?? unlessKnown
    return { wanted: want, access, isAssumed: !found, record, isGranted: isGranted(record, want, uid) }
  }

  const grant = async (cluster: ManagedCluster, signal: AbortSignal): Promise<GrantRecord> => {
    const want = wanted(cluster)
    const clusterUid = cluster.metadata.uid ?? ''
    try {
      let record = await recordFor(cluster, want, signal)
      const { iam, eks } = await callers(signal)
      const access = (await accessFor(record, eks)) ?? unlessKnown
      const granted = digestOf(want, access)
      const expected = record?.granted === granted
      const accesses = [...new Set([...(record?.access ?? []).filter((one) => one !== access), access])]
      const intent = { clusterUid, access: accesses, granted: '', verifiedAt: 0 }
      if (!record) record = await records.create(want, intent, signal)
      else if (!expected || record.clusterUid !== clusterUid) record = await records.update(record, intent, signal)
      if (record.cluster !== want.cluster) throw taken(want, record)

      await ensureRole(iam, want, { expected })
      const mapping = mappingOf(want, access)
      if (access === 'aws-auth') await awsAuth.set(mapping, signal)
      else await eks.set(mapping, tags, { expected })
      const old = accesses.filter((one) => one !== access)
      const since = expected ? record.verifiedAt : clock.now()
      if (old.length > 0 && clock.now() - since < (options.bothMappingsMs ?? bothMappingsMs))
        return await records.update(record, { access: accesses, granted, verifiedAt: since }, signal)
      for (const one of old) await unmap(want.roleArn, one, eks, signal)
      return await records.update(record, { access: [access], granted, verifiedAt: clock.now() }, signal)
    } catch (error) {
      throw explained(error, { cluster: want.cluster, deed: `make role ${want.roleArn}`, hub, pair: want.pair })
    }
  }

  return { records, awsAuth, wanted, lookAtMode, accessOf, isGranted, look, grant, revoke }
}

const changed = ({ cluster, arn }: Wanted, has: GrantRecord): ReconcileError =>
  stalled('ArnChanged', {
    message: `cluster ${cluster} was accepted as ${has.arn}, and its annotation now says ${arn}: that gives it nothing, and what it was given stays as it was`,
    next: `put the annotation back; if the cluster really has another ARN now, deny it, correct the annotation and accept it again`,
  })

const taken = ({ cluster, arn }: Wanted, by: GrantRecord): ReconcileError =>
  waiting('ArnTaken', {
    message: `cluster ${cluster} says that it is ${arn}, which was accepted as cluster ${by.cluster}`,
    next: `if it is the same cluster, delete one of the two ManagedClusters; else let ${cluster} join with its own ARN`,
    afterMs: 60_000,
  })
