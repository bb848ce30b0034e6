import type { ManagedClusterAddOn } from '../../api/index.ts'
import { findCondition } from '../../runtime/index.ts'
import { AddOnAvailable, Degraded, kubeClientOf, RegistrationApplied } from '../contract.ts'
import type { AddOnHub } from './hub.ts'

/** How an add-on is, as one word. */
const stateOf = (addOn: ManagedClusterAddOn): string => {
  if (addOn.metadata.deletionTimestamp) return 'deleting'
  if (findCondition(addOn, Degraded.type)?.status === 'True') return 'degraded'
  if (findCondition(addOn, RegistrationApplied.type)?.status === 'False') return 'registering'
  const available = findCondition(addOn, AddOnAvailable.type)?.status
  return available === 'True' ? 'available' : available === 'False' ? 'unavailable' : 'unknown'
}

const states = ['registering', 'available', 'unavailable', 'unknown', 'degraded', 'deleting']

/** Counts add-ons when somebody asks: nothing has to be kept up to date. */
export const addOnMetrics = (hub: AddOnHub): void => {
  const gauge = hub.manager.metrics.gauge('lanyard_hub_addons', 'Add-ons on managed clusters by state')
  for (const state of states)
    gauge.read(() => hub.addOns.list().filter((addOn) => stateOf(addOn) === state).length, { state })
  const drivers = hub.manager.metrics.gauge('lanyard_hub_addon_drivers', 'Add-ons by the driver that they declare')
  for (const driver of ['csr', 'token', 'none'])
    drivers.read(
      () => hub.addOns.list().filter((one) => (kubeClientOf(one)?.kubeClient?.driver ?? 'none') === driver).length,
      { driver },
    )
}
