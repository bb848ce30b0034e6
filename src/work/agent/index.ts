/** Delivers ManifestWorks to a managed cluster, protects what it delivered, and reports. */
export type { WorkAgentOptions } from './agent.ts'
export { runWorkAgent } from './run.ts'
export { releaseWorks, removeWorks, type DepartureOptions } from './departure.ts'
