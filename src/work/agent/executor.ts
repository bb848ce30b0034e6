import {
  isAlreadyExists,
  isForbidden,
  mayAccess,
  type Client,
  type ServedResource,
  type Unstructured,
} from '../../kube/index.ts'
import { executorIdentity, type Executor } from '../contract.ts'
import type { Target } from './plan.ts'
import { ApplyProblem } from './strategies/index.ts'

/** Checks that a work's executor may do what the agent does for it. */
export interface ExecutorCheck {
  /** Throws with the verb and the resource that are missing. */
  mayApply(target: Target, name: string): Promise<void>
  /** For roles and bindings, throws when they give more than the executor has itself. */
  mayWrite(target: Target, next: Unstructured, present: Unstructured | undefined): Promise<void>
}

/** Nobody is named: the agent acts as itself. */
const itself: ExecutorCheck = { mayApply: async () => {}, mayWrite: async () => {} }

const rbacGroup = 'rbac.authorization.k8s.io'

/** The check for one pass over a work: what was asked once is not asked again. */
export const executorCheck = (local: Client, executor: Executor | undefined, signal: AbortSignal): ExecutorCheck => {
  const identity = executorIdentity(executor)
  if (!identity) return itself
  const { user, groups } = identity
  const asked = new Map<string, Promise<boolean>>()
  const ask = (
    verb: string,
    { group, version, plural }: ServedResource,
    namespace?: string,
    name?: string,
  ): Promise<boolean> => {
    const what = { verb, group, version, resource: plural, namespace, name }
    const key = JSON.stringify(what)
    let answer = asked.get(key)
    if (!answer) asked.set(key, (answer = mayAccess(local, { username: user, groups }, what, { signal })))
    return answer
  }
  return {
    mayApply: async (target, name) => {
      const { resource, namespace } = target
      for (const verb of verbsFor(target)) {
        // Most executors may touch all objects of a kind: one question for them all.
        if ((await ask(verb, resource, namespace)) || (await ask(verb, resource, namespace, name))) continue
        const where = namespace ? ` in namespace ${namespace}` : ''
        throw new ApplyProblem(
          `the executor ${user} may not ${verb} ${resource.plural}${resource.group ? `.${resource.group}` : ''}${where}; give it that right on the managed cluster, or name another executor`,
        )
      }
    },
    mayWrite: async ({ resource, namespace }, next, present) => {
      if (resource.group !== rbacGroup) return
      const objects = local.as({ user, groups }).of<Unstructured>(resource, namespace)
      try {
        // The API server knows what the executor holds; it stores nothing.
        if (present)
          await objects.update(
            { ...present, ...next, metadata: { ...present.metadata, ...next.metadata } },
            { dryRun: true, signal },
          )
        else await objects.create(next, { dryRun: true, signal })
      } catch (error) {
        if (isAlreadyExists(error)) return // it is about to be replaced: its rights were looked at before that
        if (!isForbidden(error)) throw error
        throw new ApplyProblem(`the executor ${user} may not give these rights: ${error.serverMessage}`, {
          cause: error,
        })
      }
    },
  }
}

const verbsFor = ({ config, orphan }: Target): string[] => {
  const type = config.updateStrategy?.type ?? 'Update'
  if (type === 'ReadOnly') return ['get']
  if (type === 'CreateOnly') return ['get', 'create', ...(orphan ? [] : ['delete'])]
  // What is owned is deleted with the work.
  return ['get', 'create', 'update', 'patch', ...(orphan ? [] : ['delete'])]
}
