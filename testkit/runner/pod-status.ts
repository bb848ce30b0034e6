import { timestamp } from '../../src/runtime/index.ts'
import type { ContainerStatus, Pod, PodCondition, PodStatus } from './kinds.ts'

export interface PodFacts {
  pod: Pod
  /** The status that was reported last. */
  before: PodStatus
  initContainers: ContainerStatus[]
  containers: ContainerStatus[]
  /** The address on the cluster's network. */
  podIP: string
  now: number
}

/** What a kubelet reports of a pod whose containers are in these states. */
export const podStatus = ({ pod, before, initContainers, containers, podIP, now }: PodFacts): PodStatus => {
  const phase = phaseOf(pod, initContainers, containers)
  const over = phase === 'Succeeded' || phase === 'Failed'
  const initialized = initContainers.every(({ state }) => state.terminated?.exitCode === 0)
  const ready = !over && containers.every((one) => one.ready)
  const unready = containers.filter((one) => !one.ready).map((one) => one.name)
  const why = over
    ? { reason: phase === 'Succeeded' ? 'PodCompleted' : 'PodFailed' }
    : { reason: 'ContainersNotReady', message: `containers with unready status: [${unready.join(' ')}]` }
  const condition = (type: string, good: boolean, reason: { reason: string; message?: string }): PodCondition => {
    const status = good ? 'True' : 'False'
    const old = before.conditions?.find((one) => one.type === type)
    const lastTransitionTime = old?.status === status ? old.lastTransitionTime : timestamp(now)
    return { type, status, lastTransitionTime, ...(good ? {} : reason) }
  }
  return {
    phase,
    conditions: [
      condition('PodScheduled', true, why),
      condition('Initialized', initialized, { reason: 'ContainersNotInitialized' }),
      condition('ContainersReady', ready, why),
      condition('Ready', ready, why),
    ],
    hostIP: podIP.replace(/\d+$/, '1'),
    podIP,
    podIPs: [{ ip: podIP }],
    startTime: before.startTime ?? timestamp(now),
    ...(initContainers.length && { initContainerStatuses: initContainers }),
    containerStatuses: containers,
  }
}

/** The status as a patch that leaves alone the conditions of others, and nothing of what was here before. */
export const asStrategicPatch = ({ conditions, podIPs, ...status }: PodStatus): object => ({
  ...status,
  conditions: conditions?.map((one) => ({ reason: null, message: null, ...one })),
  podIPs: [...(podIPs ?? []), { $patch: 'replace' }],
})

const phaseOf = (pod: Pod, init: ContainerStatus[], containers: ContainerStatus[]): NonNullable<PodStatus['phase']> => {
  const { restartPolicy = 'Always' } = pod.spec
  const leaving = pod.metadata.deletionTimestamp !== undefined
  const failed = (of: ContainerStatus[]) => of.some(({ state }) => (state.terminated?.exitCode ?? 0) !== 0)
  if (failed(init) && (restartPolicy === 'Never' || leaving)) return 'Failed'
  const ended = containers.every(({ state }) => state.terminated)
  const stays = leaving || restartPolicy === 'Never' || (restartPolicy === 'OnFailure' && !failed(containers))
  if (ended && stays) return failed(containers) ? 'Failed' : 'Succeeded'
  const began = (one: ContainerStatus) => one.state.running ?? one.state.terminated ?? one.lastState.terminated
  return containers.every(began) ? 'Running' : 'Pending'
}
