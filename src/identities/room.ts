import type { CredentialCache } from '../aws/index.ts'
import type { Client } from '../kube/index.ts'
import type { Clock, EventRecorder, Logger, Manager } from '../runtime/index.ts'
import type { Claims } from './claims.ts'
import type { Records } from './records.ts'

export interface IdentitySettings {
  /** Whether a missing AWSClusterControllerIdentity is made, once. */
  autoControllerIdentityCreator: boolean
  /** How long a worker waits for AWS before it turns to other clusters; the answer is not lost. */
  patienceMs: number
}

/** What all parts of this room get. */
export interface Room {
  client: Client
  manager: Manager
  records: Records
  credentials: Pick<CredentialCache, 'get' | 'caller' | 'forget'>
  claims: Claims
  events: EventRecorder
  clock: Clock
  log: Logger
  settings: IdentitySettings
}
