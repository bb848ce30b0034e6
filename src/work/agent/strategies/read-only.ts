import { ApplyProblem, type Strategy } from './strategy.ts'

/** Only looked at, for availability and feedback: neither written nor owned. */
export const readOnly: Strategy = async ({ objects, desired, signal }) => {
  const live = await objects.find(desired.metadata.name!, { signal })
  if (live) return { live }
  throw new ApplyProblem('it does not exist, and with the strategy ReadOnly the agent does not make it')
}
