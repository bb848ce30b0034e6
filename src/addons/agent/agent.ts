import type { ManagedClusterAddOn } from '../../api/index.ts'
import type { Api, Client, Namespace } from '../../kube/index.ts'
import type { AddOnSubject, AgentIdentity, CredentialDriver, HubAddress } from '../../registration/contract.ts'
import { Freshest, type Clock, type Informer, type Logger, type Metrics } from '../../runtime/index.ts'
import { addOnDnsName } from '../contract.ts'
import { keepers, lifetimeOf, type DriverCounts, type Item, type Keeper } from '../drivers/index.ts'
import type { AddOnLeases } from './health.ts'
import { addOnMetrics, type SeenCredential } from './metrics.ts'
import { identityOf } from './plan.ts'
import type { CredentialSecrets } from './secrets.ts'

export interface AddOnAgentOptions {
  /** The hub, as this cluster. */
  hub: Api
  /** Where it is, for the kubeconfigs of add-ons. */
  address: HubAddress
  /** The managed cluster. */
  local: Client
  identity: AgentIdentity
  /** The agent's own namespace: it marks the secrets that this agent keeps. */
  owner: string
  /** For `kubeClient` items; one that is not known is said in a condition. */
  driver: string
  /** Lifetime of tokens to ask for; 0 and absent are one year. */
  tokenExpirationSeconds?: number | undefined
  /** A certificate over the cluster's own way to the hub: `AgentDriver.forAddOn`. */
  certificateFor: (subject: AddOnSubject) => CredentialDriver
  clock?: Clock | undefined
  random?: (() => number) | undefined
  log?: Logger | undefined
  metrics: Metrics
}

/** A driver instance and the item it was made for. */
interface Instance {
  readonly item: Item
  readonly identity: string
  readonly keeper: Keeper
}

/** What the parts of the add-on agent share. */
export interface AddOnAgent {
  readonly hub: Api
  readonly cluster: string
  readonly driver: string
  readonly clock: Clock
  readonly log: Logger
  readonly secrets: CredentialSecrets
  readonly namespaces: Informer<Namespace>
  readonly leases: AddOnLeases
  /** What our last write of an add-on's status answered. */
  readonly written: Freshest<ManagedClusterAddOn>
  /** Add-ons whose declared driver the hub dropped, by UID, and when: it is too old to know drivers. */
  readonly undeclared: Map<string, number>
  addOnOf(name: string): ManagedClusterAddOn | undefined
  /** The driver instances of these items, and no others any more. */
  instancesOf(addOn: string, items: readonly Item[]): Promise<readonly { item: Item; keeper: Keeper }[]>
  stop(): Promise<void>
}

/** Puts the parts together; informers and queue are given. */
export const agentFrom = (
  options: AddOnAgentOptions,
  parts: {
    addOns: Informer<ManagedClusterAddOn>
    namespaces: Informer<Namespace>
    leases: AddOnLeases
    secrets: CredentialSecrets
    clock: Clock
    log: Logger
    enqueue: (addOn: string) => void
  },
): AddOnAgent => {
  const { hub, identity, address, driver, random = Math.random } = options
  const { addOns, namespaces, leases, secrets, clock, log, enqueue } = parts
  const instances = new Map<string, Instance[]>()
  const counts = addOnMetrics(
    options.metrics,
    () => seen(instances),
    () => clock.now(),
  )
  const written = new Freshest<ManagedClusterAddOn>()

  const start = (item: Item): Instance => {
    const keeper = keepers[item.driver]({
      item,
      identity,
      hub,
      address,
      certificateFor: (of) => options.certificateFor(subjectOf(of)),
      tokenSeconds: lifetimeOf(options.tokenExpirationSeconds),
      write: (content, signal) => secrets.write(item, content, signal),
      enqueue: () => enqueue(item.addOn),
      counts: counts satisfies DriverCounts,
      clock,
      random,
      log,
    })
    return { item, identity: identityOf(item), keeper }
  }

  return {
    hub,
    cluster: identity.cluster,
    driver,
    clock,
    log,
    secrets,
    namespaces,
    leases,
    written,
    undeclared: new Map(),
    addOnOf: (name) => written.of(name, addOns.get(`${identity.cluster}/${name}`)),
    instancesOf: async (addOn, items) => {
      const wanted = items.map(identityOf)
      const present = instances.get(addOn) ?? []
      // Nothing of an old instance may still write when the next one begins.
      await Promise.all(present.filter((one) => !wanted.includes(one.identity)).map(({ keeper }) => keeper.stop()))
      const next = items.map((item, i) => present.find((one) => one.identity === wanted[i]) ?? start(item))
      if (next.length) instances.set(addOn, next)
      else instances.delete(addOn)
      return next
    },
    stop: async () => {
      await Promise.all([...instances.values()].flat().map(({ keeper }) => keeper.stop()))
      instances.clear()
    },
  }
}

const subjectOf = ({ addOn, user, groups, organizationalUnits, signerName }: Item): AddOnSubject => ({
  addOn,
  user,
  groups,
  organizationalUnits,
  signerName,
  dnsNames: [addOnDnsName(addOn)],
})

function* seen(instances: ReadonlyMap<string, readonly Instance[]>): Generator<SeenCredential> {
  for (const { item, keeper } of [...instances.values()].flat())
    yield {
      addOn: item.addOn,
      secret: item.secret,
      driver: item.driver,
      expiresAt: keeper.expiresAt(),
      issuedAt: keeper.issuedAt?.(),
    }
}
