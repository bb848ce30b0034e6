import type { ManagedClusterAddOn } from '../../api/index.ts'
import { Lease, type Client } from '../../kube/index.ts'
import { Informer, sleep, type Clock, type ConditionState, type Logger } from '../../runtime/index.ts'
import { AddOnAvailable, addOnLease } from '../contract.ts'

/** How long an add-on may take to begin before its health is called unknown. */
const installMs = 60_000
/** The same for one without a status: until its controller on the hub has said a word, nobody knows what its health is known by. */
const unservedMs = 300_000

/** What an add-on's lease says of its health, and when that is over; undefined for add-ons whose health is known otherwise. */
export const healthOf = (
  { metadata, status }: ManagedClusterAddOn,
  lease: Lease | undefined,
  now: number,
): { condition?: ConditionState; until: number } | undefined => {
  if (status?.healthCheck?.mode === 'Customized') return undefined
  const { name } = metadata
  if (!lease) {
    // One that is just being installed has none yet: that is no news.
    const dueAt = Date.parse(metadata.creationTimestamp ?? '') + (status ? installMs : unservedMs)
    if (now < dueAt && !status?.conditions?.some(({ type }) => type === AddOnAvailable.type)) return { until: dueAt }
    const message = `The status of ${name} add-on is unknown: it has no lease in its install namespace.`
    return { condition: AddOnAvailable.leaseNotFound(message), until: Infinity }
  }
  const until = endOf(lease)
  if (now < until) return { condition: AddOnAvailable.leaseUpdated(`${name} add-on is available.`), until }
  const message = `${name} add-on is not available: it stopped renewing its lease.`
  return { condition: AddOnAvailable.leaseStopped(message), until: Infinity }
}

const firstListMs = 2000

export interface AddOnLeasesOptions {
  local: Client
  clock: Clock
  log: Logger
  /** Told the name of an add-on whose lease came, went or was renewed after a gap. */
  changed: (addOn: string) => void
  signal: AbortSignal
}

/** The leases of add-ons, followed only where add-ons are installed: nodes renew theirs all the time elsewhere. */
export class AddOnLeases {
  readonly #options: AddOnLeasesOptions
  readonly #informers = new Map<string, { informer: Informer<Lease>; running: Promise<void> }>()

  constructor(options: AddOnLeasesOptions) {
    this.#options = options
  }

  /** The lease of an add-on; undefined when it has none. The first question in a namespace waits for its list. */
  async of(addOn: string, namespace: string): Promise<Lease | undefined> {
    const { informer } = this.#informers.get(namespace) ?? this.#follow(namespace)
    const { clock, signal } = this.#options
    // Credentials must not wait for leases that may not be read; the list tells of those that there are when it comes.
    if (!informer.hasSynced) await Promise.race([informer.synced, sleep(clock, firstListMs, signal).catch(() => {})])
    return informer.get(`${namespace}/${addOnLease.name(addOn)}`)
  }

  async stopped(): Promise<void> {
    await Promise.all([...this.#informers.values()].map(({ running }) => running))
  }

  #follow(namespace: string): { informer: Informer<Lease>; running: Promise<void> } {
    const { local, clock, log, changed, signal } = this.#options
    const informer = new Informer({ client: local, resource: Lease, namespace, clock, log })
    const tell = ({ metadata }: Lease): void => changed(metadata.name!)
    informer.on({
      added: tell,
      // A renewal in time is no news: when it would have ended, somebody looks anyway.
      updated: (lease, old) => !(clock.now() < endOf(old)) && tell(lease),
      deleted: tell,
    })
    const followed = { informer, running: informer.run(signal) }
    this.#informers.set(namespace, followed)
    return followed
  }
}

const endOf = ({ spec }: Lease): number => Date.parse(spec.renewTime ?? '') + addOnLease.graceMs
