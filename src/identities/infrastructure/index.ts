/**
 * What an AWSCluster has in AWS: network, security groups, and the load balancer in front of its API server. A tour:
 *
 * `reconcile.ts` decides whether anything may be done (`standing.ts`: not while paused, and only as the identity that was let in) and
 * looks at AWS only if something changed or a long time has passed (`memory.ts`). `build.ts` lists the steps; each has a file. They
 * find what there is by tags (`names.ts`, `snapshot.ts`) and make what is missing, so that any of them can be cut off at any point.
 * `removal.ts` is the reverse; `strangers.ts` keeps both off what another provider has made. `subset.ts` and `fixed-fields.ts` say at
 * admission what is not built here, and what cannot be changed.
 * Decisions without AWS are in `plan.ts`, `rules.ts` and `cidr.ts`.
 */
import type { AWSCluster } from '../../api/index.ts'
import type { AwsClient } from '../../aws/index.ts'
import { Freshest, watching } from '../../runtime/index.ts'
import { pausedMs } from '../paused.ts'
import type { Room } from '../room.ts'
import { clientMaker } from './clients.ts'
import { Memory } from './memory.ts'
import { reconcileInfrastructure } from './reconcile.ts'
import type { InfrastructureSettings } from './scope.ts'

export { infrastructureActions } from './policy.ts'
export type { InfrastructureSettings } from './scope.ts'

export interface InfrastructureOptions {
  aws: AwsClient
  settings?: Partial<InfrastructureSettings> | undefined
  random?: (() => number) | undefined
}

const defaults: InfrastructureSettings = {
  driftMs: 1_800_000,
  pollMs: 10_000,
  settleMs: 15_000,
  retryMs: 1000,
  pausedMs,
}

/** Clusters worked on at the same time. Each waits for AWS most of the time. */
const workers = 32

/** Adds the controller that builds clusters to the manager of a room. */
export const startInfrastructure = (
  room: Room,
  { aws, settings: given, random = Math.random }: InfrastructureOptions,
) => {
  const settings = { ...defaults, ...given }
  const infrastructure = {
    room,
    settings,
    memory: new Memory({ clock: room.clock, settleMs: settings.settleMs }),
    written: new Freshest<AWSCluster>(),
    clientsFor: clientMaker(room, { aws, random }),
    random,
  }
  room.manager.controller({
    name: 'aws-infrastructure',
    workers,
    queue: { baseDelayMs: settings.retryMs, random },
    reconcile: reconcileInfrastructure(infrastructure),
    watches: [watching(room.records.clusters)],
  })
}
