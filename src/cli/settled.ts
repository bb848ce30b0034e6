import { ClusterManager, conditionType, Klusterlet } from '../api/index.ts'
import type { Client, KubeObject, ResourceClient } from '../kube/index.ts'
import type { Clock } from '../runtime/index.ts'
import { CliError } from './errors.ts'
import type { Progress } from './progress.ts'
import { untilObject } from './wait.ts'

/** What a condition must say, and has said of the latest spec. */
interface Wanted {
  type: string
  status: 'True' | 'False'
}

interface Reporting extends KubeObject {
  status?:
    | { conditions?: { type: string; status: string; message: string; observedGeneration?: number }[] | undefined }
    | undefined
}

/** Why an operator is not done with an object; undefined when it is. */
export const whyNotSettled = (object: Reporting, wanted: readonly Wanted[]): string | undefined => {
  for (const { type, status } of wanted) {
    const said = object.status?.conditions?.find((one) => one.type === type)
    if (!said) return `nothing is said about ${type} yet`
    const { observedGeneration = object.metadata.generation ?? 0 } = said
    if (observedGeneration < (object.metadata.generation ?? 0)) return `${type} is about an earlier spec`
    if (said.status !== status) return `${type} is ${said.status}: ${said.message}`
  }
  return undefined
}

interface Waiting {
  client: Client
  clock: Clock
  progress: Progress
  timeoutMs: number
}

const untilSettled = <T extends KubeObject>(
  { clock, progress, timeoutMs }: Waiting,
  of: ResourceClient<T>,
  name: string,
  wanted: readonly Wanted[],
): Promise<void> =>
  progress.step(
    `waiting for ${of.resource.kind} ${name}`,
    (step) =>
      untilObject(of, name, { step, clock }, (object) => {
        if (!object) throw new CliError(`${of.resource.kind} ${name} was deleted meanwhile`)
        const why = whyNotSettled(object, wanted)
        return why === undefined ? { done: undefined } : { seen: why }
      }),
    { timeoutMs, next: `look at it: kubectl get ${of.resource.plural} ${name} -o yaml` },
  )

/** Until the operator has brought the hub to what the ClusterManager says. */
export const untilClusterManager = (waiting: Waiting, name: string): Promise<void> =>
  untilSettled(waiting, waiting.client.of(ClusterManager), name, [
    { type: conditionType.clusterManager.applied, status: 'True' },
    { type: conditionType.clusterManager.progressing, status: 'False' },
    { type: conditionType.clusterManager.registrationDegraded, status: 'False' },
  ])

/**
 * Until the operator has brought the agent to what the Klusterlet says. Not until it is available: an agent is that when it
 * has joined, and for that somebody has to accept the cluster first.
 */
export const untilKlusterlet = (waiting: Waiting, name: string): Promise<void> =>
  untilSettled(waiting, waiting.client.of(Klusterlet), name, [
    { type: conditionType.klusterlet.applied, status: 'True' },
  ])
