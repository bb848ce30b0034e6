/**
 * The agent of a managed cluster. A tour:
 *
 * `newAgent(options)` goes round three phases, all in one process: it chooses a hub (choice.ts, hubs.ts), asks to be let in
 * and gets a credential of its own (bootstrap.ts, creation.ts), and uses it (joined.ts: heartbeat.ts, status.ts, rotation.ts,
 * and the parts that src/main plugs in). What makes it leave a hub or drop a credential is a list of checks in leaving.ts.
 * Everything it has to remember is in one Secret (hub-secret.ts).
 */
export { newAgent, runAgent, type Agent } from './agent.ts'
export { idOf } from './creation.ts'
export { isAccepted, isDenied } from './leaving.ts'
export type { Joined, JoinedPart } from './parts.ts'
export type { Phase } from './phases.ts'
export type { AgentOptions } from './settings.ts'
