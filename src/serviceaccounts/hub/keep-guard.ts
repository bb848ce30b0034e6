import { applySet, watching } from '../../runtime/index.ts'
import { guard } from '../contract.ts'
import { guardObjects } from './guard.ts'
import { fieldManager, type Hub } from './hub.ts'

/** Puts the rules back when somebody changes or removes them. */
export const keepGuard = ({ manager, client }: Hub): void => {
  const only = { fieldSelector: `metadata.name=${guard.name}` }
  const policies = manager.informer(guard.policy, only)
  const bindings = manager.informer(guard.binding, only)
  const targets = [
    { resource: guard.policy, cache: policies },
    { resource: guard.binding, cache: bindings },
  ]
  manager.controller({
    name: 'service-account-guard',
    workers: 1,
    reconcile: async (_, signal) => {
      await applySet(guardObjects(), { client, targets, fieldManager, signal })
      return {}
    },
    watches: [watching(policies), watching(bindings)],
  })
}
