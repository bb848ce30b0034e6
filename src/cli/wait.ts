import {
  ConnectionError,
  isExpired,
  isNotFound,
  type KubeObject,
  type ObjectApi,
  type ObjectList,
} from '../kube/index.ts'
import { sleep, type Clock } from '../runtime/index.ts'
import type { Step } from './progress.ts'

/** What a look at the objects gives: done, with a value, or not yet, with what is seen instead. */
export type Look<R> = { done: R } | { seen: string }

/**
 * Follows the objects of one kind until a look says that it is done. A server that goes away for a while is waited for: it
 * may be the thing that restarts.
 */
export const untilObjects = async <T extends KubeObject, R>(
  of: ObjectApi<T>,
  { step, clock, fieldSelector, labelSelector }: WaitOptions,
  look: (objects: T[]) => Look<R> | Promise<Look<R>>,
): Promise<R> => {
  const { signal } = step
  for (;;) {
    try {
      const list = await listed(of, { fieldSelector, labelSelector, signal })
      const objects = new Map(list.items.map((one) => [one.metadata.uid, one]))
      const judge = async (): Promise<{ done: R } | undefined> => {
        const found = await look([...objects.values()])
        if ('done' in found) return found
        step.seen(found.seen)
        return undefined
      }
      const first = await judge()
      if (first) return first.done
      const { resourceVersion } = list.metadata
      const watch = { fieldSelector, labelSelector, resourceVersion, timeoutSeconds: 60, signal }
      for await (const batch of await of.watch(watch)) {
        let changed = false
        for (const { type, object } of batch) {
          if (type === 'BOOKMARK') continue
          if (type === 'DELETED') objects.delete(object.metadata.uid)
          else objects.set(object.metadata.uid, object)
          changed = true
        }
        const found = changed ? await judge() : undefined
        if (found) return found.done
      }
    } catch (error) {
      signal.throwIfAborted()
      // A kind that is not served yet: its CRD is on its way.
      if (!(error instanceof ConnectionError) && !isNotFound(error) && !isExpired(error)) throw error
      step.seen(error instanceof ConnectionError ? 'the API server does not answer' : 'its kind is not served yet')
    }
    await sleep(clock, 500, signal)
  }
}

export interface WaitOptions {
  step: Step
  clock: Clock
  fieldSelector?: string | undefined
  labelSelector?: string | undefined
}

const listed = <T extends KubeObject>(
  of: ObjectApi<T>,
  options: { fieldSelector?: string | undefined; labelSelector?: string | undefined; signal: AbortSignal },
): Promise<ObjectList<T>> => of.list(options)

/** Follows one object; undefined when it does not exist. */
export const untilObject = <T extends KubeObject, R>(
  of: ObjectApi<T>,
  name: string,
  options: Pick<WaitOptions, 'step' | 'clock'>,
  look: (object: T | undefined) => Look<R> | Promise<Look<R>>,
): Promise<R> =>
  untilObjects(of, { ...options, fieldSelector: `metadata.name=${name}` }, (objects) =>
    look(objects.find(({ metadata }) => metadata.name === name)),
  )

/** Waits until an object no longer exists, and says what holds it meanwhile. `help` sees each change of it. */
export const untilGone = <T extends KubeObject>(
  of: ObjectApi<T>,
  name: string,
  options: Pick<WaitOptions, 'step' | 'clock'>,
  help: (left: T) => Promise<void> = async () => {},
): Promise<void> =>
  untilObject(of, name, options, async (object) => {
    if (!object) return { done: undefined }
    await help(object)
    const { finalizers = [] } = object.metadata
    return { seen: finalizers.length > 0 ? `held by ${finalizers.join(', ')}` : 'still there' }
  }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error
  })
