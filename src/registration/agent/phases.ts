import type { ConditionState, Reason } from '../../runtime/index.ts'
import type { AgentIdentity, SecretData } from '../drivers/driver.ts'
import type { Bootstraps } from './bootstraps.ts'
import type { HubSecret } from './hub-secret.ts'
import type { ChosenHub } from './hubs.ts'
import type { Readiness } from './readiness.ts'
import type { Settings } from './settings.ts'
import type { LocalFacts } from './status.ts'

/** Where an agent is on its way. Each phase ends with the next one. */
export type Phase =
  | { readonly name: 'choose' }
  | { readonly name: 'bootstrap'; readonly hub: ChosenHub & { bootstrap: SecretData }; readonly because: Reason }
  | { readonly name: 'joined'; readonly hub: ChosenHub }

/** What the phases share. */
export interface AgentState {
  readonly settings: Settings
  readonly identity: AgentIdentity
  readonly facts: LocalFacts
  readonly secret: HubSecret
  readonly bootstraps: Bootstraps
  readonly readiness: Readiness
  /** Hubs that denied us or were gone for long, by the secret that leads there. */
  readonly failures: Map<string, Reason & { at: number }>
  /** What the driver last said of the credential, by type of condition. */
  readonly conditions: Map<string, ConditionState>
  /** A credential that looks good and that the hub refuses nevertheless. */
  refused: SecretData | undefined
}
