import { ManagedServiceAccount } from '../../api/index.ts'
import { ServiceAccount } from '../../kube/index.ts'
import { Controller, Freshest, Informer, silentLogger, systemClock, watching } from '../../runtime/index.ts'
import { agentAccount } from '../contract.ts'
import type { AccountAgent, ServiceAccountAgentOptions } from './agent.ts'
import { serviceAccountMetrics } from './metrics.ts'
import { reconcileAccount } from './reconcile.ts'
import { SigningKeys } from './signing-keys.ts'

const accountsAtOnce = 16

/** Keeps the ManagedServiceAccounts of one cluster until the signal. Started again at any moment, it goes on where it was. */
export const runServiceAccountAgent = async (
  options: ServiceAccountAgentOptions,
  signal: AbortSignal,
): Promise<void> => {
  const { hub, local, cluster, namespace, clock = systemClock, random } = options
  const log = (options.log ?? silentLogger).with({ part: 'service-accounts', cluster })
  const shared = { clock, log }
  const wanted = new Informer({ client: hub, resource: ManagedServiceAccount, namespace: cluster, ...shared })
  // All of the namespace: an account that lost its label, and one that is somebody else's, are seen at once.
  const accounts = new Informer({ client: local, resource: ServiceAccount, namespace, ...shared })
  const keys = new SigningKeys({ local, ...shared, missedMs: (since) => accounts.missedMs(since) })
  const agent = agentFrom(options, { wanted, accounts, keys, clock, log })
  const byName = ({ metadata }: { metadata: { name?: string | undefined } }): string[] => [metadata.name!]
  const controller = new Controller({
    name: 'service-accounts',
    ...shared,
    metrics: options.metrics,
    workers: accountsAtOnce,
    queue: { baseDelayMs: 100, maxDelayMs: 60_000, ...(random && { random }) },
    reconcile: reconcileAccount(agent),
    watches: [
      watching(wanted, byName),
      watching(accounts, byName),
      // Everything belongs to the agent's own account.
      watching(
        accounts,
        () => wanted.list(cluster).flatMap(byName),
        ({ metadata }, old) => metadata.name === agentAccount && metadata.uid !== old?.metadata.uid,
      ),
    ],
  })
  const stop = new AbortController()
  const informers = [wanted, accounts]
  const running = informers.map((informer) => informer.run(stop.signal))
  try {
    // The keys come first: tokens of those that are gone are renewed at once, and are not taken for good before.
    const known = [...informers.map(({ synced }) => synced), keys.look(stop.signal)]
    await Promise.race([Promise.all(known), ended(signal)])
    if (signal.aborted) return
    log.info('keeping service accounts', { accounts: wanted.size, namespace })
    options.onReady?.()
    const renewAll = (): void => {
      for (const { metadata, status } of wanted.list(cluster))
        if (keys.isGone(status?.tokenSecretRef?.signingKey)) controller.enqueue(metadata.name!)
    }
    running.push(keys.follow(renewAll, stop.signal))
    await controller.run(signal)
  } finally {
    stop.abort()
    await Promise.all(running)
  }
}

const agentFrom = (
  options: ServiceAccountAgentOptions,
  parts: Pick<AccountAgent, 'keys' | 'clock' | 'log'> & {
    wanted: Informer<ManagedServiceAccount>
    accounts: Informer<ServiceAccount>
  },
): AccountAgent => {
  const { hub, local, cluster, namespace, ownAccounts = [] } = options
  const { wanted, accounts, keys, clock, log } = parts
  const statuses = new Freshest<ManagedServiceAccount>()
  const written = new Freshest<ServiceAccount>()
  const received: AccountAgent['received'] = new Map()
  const unreported = new Set<string>()
  accounts.on({ deleted: ({ metadata }) => written.forget(metadata.name!) })
  return {
    hub,
    local,
    cluster,
    namespace,
    own: new Set([agentAccount, ...ownAccounts]),
    clock,
    log,
    counts: serviceAccountMetrics(options.metrics, () => wanted.size),
    keys,
    received,
    unreported,
    wantedOf: (name) => statuses.of(name, wanted.get(`${cluster}/${name}`)),
    wroteStatus: (before, after) => statuses.wrote(before.metadata.name!, before, after),
    accountOf: (name) => written.of(name, accounts.get(`${namespace}/${name}`)),
    wroteAccount: (before, after) => written.wrote(after.metadata.name!, before, after),
    forget: (name) => {
      statuses.forget(name)
      received.delete(name)
      unreported.delete(name)
    },
  }
}

const ended = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
