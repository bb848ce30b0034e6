import type { Client } from '../kube/index.ts'
import type { Clock, EventRecorder, Logger, Manager } from '../runtime/index.ts'

/** What the controllers of an operator share. */
export interface Operator {
  readonly client: Client
  readonly manager: Manager
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Logger
  readonly settings: OperatorSettings
}

export interface OperatorSettings {
  /** For objects that name none. */
  image: string
  /** Registration drivers that this version knows, as objects spell them. */
  drivers: readonly string[]
  /** Replicas of the hub. */
  hubReplicas: number
  /** The ClusterRole that works are applied with. */
  workRole: string
  /** Where the operator itself runs. */
  namespace: string
  /** How long an agent that is removed may take to leave its hub and to remove its works. */
  leaveMs: number
}
