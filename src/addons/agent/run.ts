import { ManagedClusterAddOn } from '../../api/index.ts'
import { Namespace } from '../../kube/index.ts'
import { Controller, Informer, silentLogger, systemClock, watching } from '../../runtime/index.ts'
import { installNamespaceOf } from '../contract.ts'
import { doubtfulLifetime, lifetimeOf } from '../drivers/index.ts'
import { agentFrom, type AddOnAgentOptions } from './agent.ts'
import { AddOnLeases } from './health.ts'
import { isKnownDriver } from './plan.ts'
import { untilServed } from './old-api.ts'
import { register } from './register.ts'
import { addOnOf, CredentialSecrets } from './secrets.ts'

const addOnsAtOnce = 8

/** Keeps the credentials of all add-ons of one cluster until the signal. Started again at any moment, it goes on where it was. */
export const runAddOnAgent = async (options: AddOnAgentOptions, signal: AbortSignal): Promise<void> => {
  const { hub, local, owner, identity, clock = systemClock } = options
  const { cluster } = identity
  const log = (options.log ?? silentLogger).with({ part: 'addons', cluster })
  const addOns = new Informer<ManagedClusterAddOn>({
    client: hub,
    resource: ManagedClusterAddOn,
    namespace: cluster,
    clock,
    log,
  })
  addOns.addIndex('installed', (addOn) => [installNamespaceOf(addOn)])
  const namespaces = new Informer<Namespace>({ client: local, resource: Namespace, metadataOnly: true, clock, log })
  const secrets = new CredentialSecrets({ local, owner, clock, log })
  const stop = new AbortController()
  const changed = (name: string): void => controller.enqueue(name)
  const leases = new AddOnLeases({ local, clock, log, changed, signal: stop.signal })
  const agent = agentFrom(options, {
    addOns,
    namespaces,
    leases,
    secrets,
    clock,
    log,
    enqueue: changed,
  })
  const installedIn = ({ metadata }: Namespace): string[] =>
    addOns.by('installed', metadata.name!).map((addOn) => addOn.metadata.name!)

  const controller: Controller = new Controller({
    name: 'addon-credentials',
    clock,
    log,
    metrics: options.metrics,
    queue: { baseDelayMs: 500, maxDelayMs: 60_000, ...(options.random ? { random: options.random } : {}) },
    workers: addOnsAtOnce,
    reconcile: register(agent),
    watches: [
      watching(addOns, ({ metadata }) => [metadata.name!]),
      watching(secrets.informer, (secret) => [addOnOf(secret)]),
      watching(namespaces, installedIn, (namespace, old) => !old || Boolean(namespace.metadata.deletionTimestamp)),
    ],
  })

  sayWhatIsDoubtful(options, log)
  try {
    await untilServed({ hub, cluster, clock, log }, signal)
  } catch (error) {
    if (signal.aborted) return
    throw error
  }
  const informers = [addOns, namespaces, secrets.informer]
  const running = informers.map((informer) => informer.run(stop.signal))
  try {
    await Promise.race([Promise.all(informers.map(({ synced }) => synced)), ended(signal)])
    if (signal.aborted) return
    log.info('keeping the credentials of add-ons', { addOns: addOns.size, driver: options.driver })
    await controller.run(signal)
  } finally {
    stop.abort()
    await agent.stop()
    await Promise.all([...running, leases.stopped()])
  }
}

const sayWhatIsDoubtful = (
  { driver, tokenExpirationSeconds }: AddOnAgentOptions,
  log: NonNullable<AddOnAgentOptions['log']>,
): void => {
  if (!isKnownDriver(driver))
    log.error(
      'add-ons get no credentials for the hub: --addon-kubeclient-registration-auth is no driver that there is',
      { driver },
    )
  const doubt = doubtfulLifetime(lifetimeOf(tokenExpirationSeconds))
  if (doubt && driver === 'token') log.warn(doubt.message)
}

const ended = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
