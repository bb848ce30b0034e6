import { isForgotten, remindOfDeletion } from '../api/index.ts'
import { CustomResourceDefinition, Namespace, type Client, type KubeObject } from '../kube/index.ts'
import { sleep } from '../runtime/index.ts'
import type { Cli } from './command.ts'
import type { Step } from './progress.ts'
import { untilGone } from './wait.ts'

/** As long as the API server goes on by itself with a definition, it does so within this time. */
const patienceMs = 1000

/** Waits for those of the removed objects that take their time: namespaces and CRDs, with all that is in them. */
export const untilObjectsGone = async (
  cli: Cli,
  client: Client,
  removed: readonly KubeObject[],
  what: string,
): Promise<void> => {
  const slow = removed.filter(({ kind }) => kind === Namespace.kind || kind === CustomResourceDefinition.kind)
  if (slow.length === 0) return
  await cli.progress.step(
    `waiting until ${what} is gone`,
    async (step) => {
      for (const { kind, metadata } of slow) {
        step.seen(`${kind} ${metadata.name}`)
        await (kind === Namespace.kind ? namespaceGone : definitionGone)(cli, client, metadata.name!, step)
      }
    },
    {
      timeoutMs: cli.flags.timeout * 1000,
      next: `see what holds them: ${slow.map(({ kind, metadata }) => `kubectl get ${kind!.toLowerCase()} ${metadata.name} -o yaml`).join('; ')}`,
    },
  )
}

const namespaceGone = ({ clock }: Cli, client: Client, name: string, step: Step): Promise<void> =>
  untilGone(client.of(Namespace), name, { step, clock })

const definitionGone = ({ clock }: Cli, client: Client, name: string, step: Step): Promise<void> =>
  untilGone(client.of(CustomResourceDefinition), name, { step, clock }, async (left) => {
    if (!isForgotten(left)) return
    await sleep(clock, patienceMs, step.signal)
    await remindOfDeletion(client, left, step.signal)
  })
