import type { Api, Condition, KubeObject, Resource } from '../kube/index.ts'
import { equal, setConditions, type Clock, type ConditionState } from '../runtime/index.ts'
import type { Generation } from './workloads.ts'

interface Related {
  group: string
  version?: string | undefined
  resource: string
  namespace?: string | undefined
  name: string
}

export interface OperatorStatus {
  conditions?: Condition[] | undefined
  generations?: Generation[] | undefined
  relatedResources?: Related[] | undefined
  observedGeneration?: number | undefined
}

/** An object that an operator reports on. */
export type Reported = KubeObject & { status?: OperatorStatus | undefined }

/** What is reported; what is left out stays as it is. */
export interface Report {
  conditions: readonly ConditionState[]
  generations?: Generation[] | undefined
  relatedResources?: Related[] | undefined
  /** Conditions that no longer say anything. */
  dropped?: readonly string[] | undefined
}

/** Writes what differs, and nothing when nothing does. Answers with the object as it is then. */
export const report = async <T extends Reported>(
  { client, resource, clock, signal }: { client: Api; resource: Resource<T>; clock: Clock; signal: AbortSignal },
  object: T,
  said: Report,
): Promise<T> => {
  const { generation } = object.metadata
  const present = object.status ?? {}
  const standing = present.conditions?.filter(({ type }) => !said.dropped?.includes(type))
  const same = standing?.length === present.conditions?.length
  const status: OperatorStatus = {
    conditions: setConditions(same ? present.conditions : standing, said.conditions, { now: clock.now(), generation }),
    generations: said.generations ?? present.generations,
    relatedResources: said.relatedResources ?? present.relatedResources,
    observedGeneration: generation,
  }
  if (equal(status, present)) return object
  const { name, resourceVersion, uid } = object.metadata
  const merge = { metadata: { uid, resourceVersion }, status }
  return client
    .of(resource)
    .patch(name!, { merge }, { subresource: 'status', fieldManager: 'lanyard-operator', signal })
}
