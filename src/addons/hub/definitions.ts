import type { ManagedClusterAddOn } from '../../api/index.ts'
import { TerminalError } from '../../runtime/index.ts'
import { configurationOf, type Configuration } from './configuration.ts'
import type { AddOn } from './definition.ts'
import type { AddOnHub } from './hub.ts'
import { fromTemplate } from './template.ts'

/** The code or the template that the add-on is made of; undefined when somebody else's controller runs it. */
export const definitionOf = (
  hub: AddOnHub,
  addOn: ManagedClusterAddOn,
  { template }: Configuration,
): AddOn | undefined => {
  const defined = hub.defined.get(addOn.metadata.name!)
  if (defined || !hub.isManager || !template) return defined
  return fromTemplate(template, hub.client)
}

/** The same for who only wants to know: a template that cannot work is none, and its add-on's condition says so. */
export const usableDefinition = (hub: AddOnHub, addOn: ManagedClusterAddOn): AddOn | undefined => {
  try {
    return definitionOf(hub, addOn, configurationOf(hub, addOn))
  } catch (error) {
    if (error instanceof TerminalError) return undefined
    throw error
  }
}
