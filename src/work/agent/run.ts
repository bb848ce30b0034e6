import { AppliedManifestWork, ManifestWork } from '../../api/index.ts'
import { Controller, Informer, silentLogger, systemClock, watching, type Reconcile } from '../../runtime/index.ts'
import { appliedName } from '../contract.ts'
import { agentFrom, type WorkAgentOptions } from './agent.ts'
import { keepRecord } from './eviction.ts'
import { deliver } from './work.ts'

const worksAtOnce = 4

/** Delivers the works of one cluster until the signal. Started again at any moment, it goes on where it was. */
export const runWorkAgent = async (options: WorkAgentOptions, signal: AbortSignal): Promise<void> => {
  const { hub, local, cluster, clock = systemClock } = options
  const log = (options.log ?? silentLogger).with({ part: 'work', cluster })
  const works = new Informer({ client: hub, resource: ManifestWork, namespace: cluster, clock, log })
  const applied = new Informer({ client: local, resource: AppliedManifestWork, clock, log })
  const agent = agentFrom(options, {
    works,
    applied,
    clock,
    log,
    enqueue: (name) => workController.enqueue(name),
    enqueueRecord: (name) => recordController.enqueue(name),
  })

  const controller = { clock, log, metrics: options.metrics, queue: { maxDelayMs: 30_000 }, workers: worksAtOnce }
  const isOurs = (record: AppliedManifestWork): boolean => record.spec.hubHash === agent.hubHash
  const workController: Controller = new Controller({
    ...controller,
    name: 'work',
    reconcile: afresh(deliver(agent), (name) => {
      agent.written.forget(name)
      agent.records.forget(appliedName(agent.hubHash, name))
    }),
    watches: [
      watching(works, (work) => [work.metadata.name!]),
      watching(applied, (record) => (isOurs(record) ? [record.spec.manifestWorkName] : [])),
    ],
  })
  const recordController: Controller = new Controller({
    ...controller,
    name: 'applied-work',
    reconcile: afresh(keepRecord(agent), (name) => agent.records.forget(name)),
    watches: [
      watching(applied),
      watching(
        works,
        (work) => [appliedName(agent.hubHash, work.metadata.name!)],
        (work, old) => !old || Boolean(work.metadata.deletionTimestamp),
      ),
    ],
  })

  const stop = new AbortController()
  const running = [works.run(stop.signal), applied.run(stop.signal)]
  try {
    options.onWaiting?.('the first list of works and of what they have left here')
    if (!(await syncedOrStopped([works, applied], signal))) return
    options.onWaiting?.(undefined)
    log.info('delivering works', { works: works.size })
    await Promise.all([workController.run(signal), recordController.run(signal)])
  } finally {
    stop.abort()
    agent.drift.stop()
    agent.newKinds.stop()
    agent.namespaces.stop()
    await Promise.all(running)
  }
}

/** After a failure only the caches are believed: what we wrote may be gone again. */
const afresh =
  (reconcile: Reconcile, forget: (key: string) => void): Reconcile =>
  async (key, signal) => {
    try {
      return await reconcile(key, signal)
    } catch (error) {
      forget(key)
      throw error
    }
  }

const syncedOrStopped = (informers: readonly { synced: Promise<void> }[], signal: AbortSignal): Promise<boolean> =>
  Promise.race([
    Promise.all(informers.map(({ synced }) => synced)).then(() => true),
    new Promise<boolean>((resolve) => {
      if (signal.aborted) resolve(false)
      signal.addEventListener('abort', () => resolve(false), { once: true })
    }),
  ])
