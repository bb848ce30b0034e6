/**
 * Looks at a join from both ends. A tour:
 *
 * `sides.ts` finds out which clusters the kubeconfigs lead to, `gather-*.ts` take a snapshot of both at once, and the `*-steps.ts`
 * walk through it: ordered lists of pure rules, each with the fault that it finds and the one command against it (`advice.ts`).
 * What could not be looked at is said, and never taken for good or bad. `report.ts` is for people.
 */
import { acceptanceSteps } from './acceptance-steps.ts'
import { addOnSteps } from './add-on-steps.ts'
import { awsSteps } from './aws-steps.ts'
import { walk, type StepResult } from './faults.ts'
import { hubSteps } from './hub-steps.ts'
import { managedSteps } from './managed-steps.ts'
import { runningSteps } from './running-steps.ts'
import type { Snapshot } from './snapshot.ts'

export { faults, type Fault, type StepResult } from './faults.ts'

/** The way of one cluster, from its first word to its add-ons. */
export const clusterSteps = [...managedSteps, ...acceptanceSteps, ...awsSteps, ...runningSteps, ...addOnSteps]

export const walkHub = (snapshot: Snapshot): StepResult[] => walk(hubSteps, snapshot)
export const walkCluster = (snapshot: Snapshot): StepResult[] => walk(clusterSteps, snapshot)
