import { isDeepStrictEqual } from 'node:util'
import { AWSCluster, conditionType, type Cluster } from '../../api/index.ts'
import { isInvalid } from '../../kube/index.ts'
import { findCondition, setConditions, type ConditionState } from '../../runtime/index.ts'
import type { Room } from '../room.ts'

export const { ready: readyType, ...stepTypes } = {
  ready: conditionType.awsCluster.ready,
  vpc: conditionType.awsCluster.vpcReady,
  subnets: conditionType.awsCluster.subnetsReady,
  internetGateway: conditionType.awsCluster.internetGatewayReady,
  natGateways: conditionType.awsCluster.natGatewaysReady,
  routeTables: conditionType.awsCluster.routeTablesReady,
  securityGroups: conditionType.awsCluster.securityGroupsReady,
  loadBalancer: conditionType.awsCluster.loadBalancerReady,
}

type Status = NonNullable<AWSCluster['status']>

/** How bad a False is. Cluster API shows it, and refuses a False that does not say. */
export type Severity = 'Error' | 'Warning' | 'Info'

/** What a condition is to say, and how bad that is; what only takes its time is not. */
export type State = ConditionState & { severity?: Severity | undefined }

/** What a pass has found out; absent parts stay as they are said. */
export interface Report {
  states: State[]
  ready?: true
  networkStatus?: Status['networkStatus']
  failureDomains?: Status['failureDomains']
}

/** A failure alarms more once machines depend on what fails. */
export const severityOf = (cluster: Cluster | undefined): Severity => {
  const { controlPlaneReady, initialization } = cluster?.status ?? {}
  return controlPlaneReady || initialization?.controlPlaneInitialized ? 'Error' : 'Warning'
}

/** Whether all of it is there, from the steps that say so. */
export const summary = (states: readonly State[]): State => {
  const missing = states.filter(({ status }) => status !== 'True')
  const first = missing[0]
  if (!first)
    return { type: readyType, status: 'True', reason: 'InfrastructureReady', message: 'all of it is there in AWS' }
  const done = `${states.length - missing.length} of ${states.length} completed`
  const message = `${done}; ${first.type}: ${first.message}`
  const severity = missing.find((state) => state.severity)?.severity
  return { type: readyType, status: 'False', reason: first.reason, message, severity }
}

type Operation = { op: 'test' | 'add'; path: string; value: unknown }

/** Writes the status, and nothing when it says all that. `ready` stays: what was there once is what machines were made on. */
export const report = async (
  room: Pick<Room, 'client' | 'clock' | 'events'>,
  cluster: AWSCluster,
  { states, ...fields }: Report,
  signal: AbortSignal,
  tries = 4,
): Promise<AWSCluster> => {
  const { status, metadata } = cluster
  const present = status?.conditions
  const at = { now: room.clock.now(), generation: metadata.generation }
  const severities = new Map(states.map(({ type, severity = 'Info' }) => [type, severity]))
  const conditions = setConditions(present, states, at).map((condition, i) =>
    condition !== present?.[i] && condition.status === 'False'
      ? { ...condition, severity: severities.get(condition.type)! }
      : condition,
  )
  const changed = Object.entries({ ...fields, conditions }).filter(
    ([field, value]) => value !== undefined && !isDeepStrictEqual(status?.[field as keyof Status], value),
  )
  if (changed.length === 0) return cluster
  const json: Operation[] = [{ op: 'test', path: '/metadata/uid', value: metadata.uid }]
  if (!status) json.push({ op: 'add', path: '/status', value: Object.fromEntries(changed) })
  else {
    // Others own other conditions: theirs must not be lost.
    json.push({ op: 'test', path: '/status/conditions', value: present ?? null })
    json.push(...changed.map(([field, value]): Operation => ({ op: 'add', path: `/status/${field}`, value })))
  }
  const clusters = room.client.of(AWSCluster, metadata.namespace)
  try {
    const patch = { subresource: 'status', fieldManager: 'lanyard', signal } as const
    const written = await clusters.patch(metadata.name!, { json }, patch)
    for (const state of states) tell(room, cluster, state)
    return written
  } catch (error) {
    if (!isInvalid(error) || tries <= 1) throw error
    // What was found out in AWS holds, whatever others have written meanwhile: it is said again on top of that.
    const fresh = await clusters.get(metadata.name!, { signal })
    return report(room, fresh, { states, ...fields }, signal, tries - 1)
  }
}

/** An event for each change of mind, and none for its repetition. */
const tell = (
  room: Pick<Room, 'events'>,
  before: AWSCluster,
  { type, status, reason, message, severity = 'Info' }: State,
): void => {
  const old = findCondition(before, type)
  if (old?.status === status && old.reason === reason) return
  const isAlarm = status !== 'True' && severity !== 'Info' && type !== readyType
  room.events.record(before, {
    type: isAlarm ? 'Warning' : 'Normal',
    reason: status === 'True' ? type : reason,
    action: 'BuildInfrastructure',
    note: message,
  })
}
