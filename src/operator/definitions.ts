import { isForgotten, remindOfDeletion } from '../api/index.ts'
import type { CustomResourceDefinition } from '../kube/index.ts'
import { watching, type Informer } from '../runtime/index.ts'
import type { Operator } from './operator.ts'

/** As long as the API server goes on by itself, it does so within this time. */
const patienceMs = 1000

/** Sees to it that definitions which are deleted go, whoever deletes them: they come back, or an installation ends, only then. */
export const finishDeletions = (
  { client, manager, clock }: Operator,
  name: string,
  definitions: Informer<CustomResourceDefinition>,
): void =>
  void manager.controller({
    name,
    workers: 1,
    watches: [watching(definitions)],
    reconcile: async (key, signal) => {
      const definition = definitions.get(key)
      if (!definition || !isForgotten(definition)) return {}
      const waitedMs = clock.now() - Date.parse(definition.metadata.deletionTimestamp!)
      if (waitedMs >= patienceMs) await remindOfDeletion(client, definition, signal)
      return { requeueAfterMs: patienceMs }
    },
  })
