import { CustomResourceDefinition, KindMapper, Namespace, type Client, type KubeObject } from '../kube/index.ts'
import type { Cli } from './command.ts'
import { untilGone } from './wait.ts'

/** Waits for those of the removed objects that take their time: namespaces and CRDs, with all that is in them. */
export const untilObjectsGone = async (
  cli: Cli,
  client: Client,
  removed: readonly KubeObject[],
  what: string,
): Promise<void> => {
  const slow = removed.filter(({ kind }) => kind === Namespace.kind || kind === CustomResourceDefinition.kind)
  if (slow.length === 0) return
  const kinds = new KindMapper(client)
  await cli.progress.step(
    `waiting until ${what} is gone`,
    async (step) => {
      for (const object of slow) {
        step.seen(`${object.kind} ${object.metadata.name}`)
        const of = client.of(await kinds.of(object, { signal: step.signal }))
        await untilGone(of, object.metadata.name!, { step, clock: cli.clock })
      }
    },
    {
      timeoutMs: cli.flags.timeout * 1000,
      next: `see what holds them: ${slow.map(({ kind, metadata }) => `kubectl get ${kind!.toLowerCase()} ${metadata.name} -o yaml`).join('; ')}`,
    },
  )
}
