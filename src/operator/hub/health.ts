import type { ConditionState } from '../../runtime/index.ts'
import { Hub } from '../conditions.ts'
import type { Deployment } from '../objects.ts'
import { availability, isRolling } from '../deployment-state.ts'

/** What the hub's Deployment says of the hub. */
export const hubHealth = (deployment: Deployment): ConditionState[] => {
  const { available, message } = availability(deployment)
  return [
    available ? Hub.RegistrationDegraded.functional() : Hub.RegistrationDegraded.unavailable(message),
    isRolling(deployment) ? Hub.Progressing.rolling(message) : Hub.Progressing.upToDate(),
  ]
}
