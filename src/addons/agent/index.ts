/**
 * The credentials of add-ons, on the managed cluster. A tour:
 *
 * `runAddOnAgent` follows the cluster's ManagedClusterAddOns. For each it makes a plan (plan.ts): which driver and subject each
 * item of `status.registrations` has, and in which secret it ends. It declares that, lets one driver instance for each item do
 * its work (../drivers), removes what nobody wants, and tells how it went (register.ts, report.ts).
 */
export type { AddOnAgentOptions } from './agent.ts'
export { runAddOnAgent } from './run.ts'
