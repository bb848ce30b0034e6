/**
 * The operators. A tour:
 *
 * `install/` says what has to be on a cluster before an operator can run: `hubInstall` and `managedInstall`, and what to
 * delete when it goes. `hub/` turns a ClusterManager into a hub, `managed/` a Klusterlet into an agent: `spec.ts` reads the
 * object, `desired.ts` says what follows from it, `controller.ts` makes it so, `removal.ts` takes it away. `set.ts`,
 * `workloads.ts` and `status.ts` are how both write. `unjoined.ts` decides which ManagedClusters nobody needs any more.
 */
export { firstManager, keepHubs } from './hub/index.ts'
export { hubImage } from './hub/spec.ts'
export { keepAgents } from './managed/index.ts'
export { agentImage, isHosted } from './managed/spec.ts'
export {
  hubInstall,
  hubRemoval,
  imageOf,
  managedInstall,
  managedRemoval,
  ownVersion,
  type InstallOptions,
  type ManagedInstallOptions,
  type Named,
} from './install/index.ts'
export type { Operator, OperatorSettings } from './operator.ts'
export { whyKept, type Departure } from './unjoined.ts'
