/**
 * The agent's side of ManagedServiceAccounts, on a managed cluster. A tour: `run.ts` watches the objects on the hub and the
 * accounts here; `reconcile.ts` handles one of them from top to bottom with `account.ts`, `refresh.ts` (whether a new token is
 * needed), `request.ts` and `secret.ts`, and says how it stands with `report.ts`.
 */
export type { ServiceAccountAgentOptions } from './agent.ts'
export { runServiceAccountAgent } from './run.ts'
