import { AppliedManifestWork, finalizer, ManifestWork } from '../../api/index.ts'
import type { Api, Client } from '../../kube/index.ts'
import {
  hasFinalizer,
  Informer,
  Metrics,
  silentLogger,
  sleep,
  systemClock,
  withoutFinalizer,
  type Clock,
  type Logger,
} from '../../runtime/index.ts'
import { agentFrom } from './agent.ts'
import { finishRecord } from './removal.ts'

export interface DepartureOptions {
  /** The managed cluster. */
  local: Client
  /** The hub's address exactly as the agent's kubeconfig has it: only what came from there is removed. */
  hubServer: string
  /** How long objects that are held by others are waited for. */
  patienceMs: number
  clock?: Clock | undefined
  log?: Logger | undefined
}

/** Removes everything that the works of one hub have left on a cluster which leaves it. Answers with what is still there. */
export const removeWorks = async (options: DepartureOptions, signal: AbortSignal): Promise<string[]> => {
  const { local, hubServer, patienceMs, clock = systemClock, log = silentLogger } = options
  const applied = new Informer({ client: local, resource: AppliedManifestWork, clock, log })
  const agent = agentFrom(
    { hub: local, local, hubServer, cluster: '', metrics: new Metrics() },
    {
      // Never asked for: without a work, nothing keeps what it left.
      works: new Informer({ client: local, resource: ManifestWork, clock, log }),
      applied,
      clock,
      log,
      enqueue: () => {},
      enqueueRecord: () => {},
    },
  )
  const records = local.of(AppliedManifestWork)
  const end = clock.now() + patienceMs
  try {
    for (;;) {
      const { items } = await records.list({ signal })
      const ours = items.filter(({ spec }) => spec.hubHash === agent.hubHash)
      if (ours.length === 0) return []
      for (const record of ours) {
        const { name, uid, deletionTimestamp } = record.metadata
        if (!deletionTimestamp) await records.delete(name!, { preconditions: { uid }, signal })
        const doomed = await records.find(name!, { signal })
        if (doomed?.metadata.deletionTimestamp) await finishRecord(agent, doomed, signal)
      }
      if (clock.now() >= end)
        return ours.map(
          ({ metadata, spec }) =>
            `work ${spec.manifestWorkName}: ${agent.troubles.get(metadata.name!) ?? 'its record is still there'}`,
        )
      if (agent.troubles.size > 0) await sleep(clock, 1000, signal)
    }
  } finally {
    agent.drift.stop()
    agent.newKinds.stop()
  }
}

/** Lets the works themselves go, once nothing of them is left here: the hub need not wait for an agent that is gone. */
export const releaseWorks = async (hub: Api, cluster: string, signal: AbortSignal): Promise<void> => {
  const works = hub.of(ManifestWork, cluster)
  const { items } = await works.list({ signal })
  for (const work of items.filter((one) => hasFinalizer(one, finalizer.manifestWork))) {
    const { name, uid, resourceVersion, finalizers } = withoutFinalizer(work, finalizer.manifestWork).metadata
    await works.patch(name!, { merge: { metadata: { uid, resourceVersion, finalizers } } }, { signal })
  }
}
