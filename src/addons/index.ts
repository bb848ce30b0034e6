/**
 * For those who write add-ons: `import { defineAddOn, runAddOns } from 'lanyard/addons'`. An add-on has a name, manifests for
 * a cluster, credentials that it needs, and permissions bound to them. See docs/guides/write-an-add-on.md and examples/.
 */
import { usualClient, type Api, type Environment } from '../kube/index.ts'
import { EventRecorder, Manager, silentLogger, type Clock, type Logger, type Metrics } from '../runtime/index.ts'
import { startAddOns, type AddOn } from './hub/index.ts'

export {
  authorityIn,
  defineAddOn,
  hookMark,
  orphanAnnotation,
  type AddOn,
  type AddOnContext,
  type CertificateSubject,
  type DeploymentConfig,
  type Health,
  type Manifest,
  type Permission,
  type RegistrationRequest,
  type SigningAuthority,
} from './hub/index.ts'
export { addOnSecretName, defaultInstallNamespace } from './contract.ts'
export * from './rules.ts'

export interface RunOptions {
  /** The hub, as somebody who may write ManifestWorks, ManagedClusterAddOns, CSRs and RBAC. */
  client: Api
  /** Which replica, in events and leases. */
  instance?: string | undefined
  /** Several replicas share a Lease in this namespace; without it this process works as if it were the only one. */
  leaseNamespace?: string | undefined
  health?: { host?: string | undefined; port: number } | undefined
  clock?: Clock | undefined
  log?: Logger | undefined
  metrics?: Metrics | undefined
}

/** Runs add-ons on a hub until the signal. The hub's own manager does the rest: tokens, installation. */
export const runAddOns = async (addOns: readonly AddOn[], options: RunOptions, signal: AbortSignal): Promise<void> => {
  const { client, instance = 'add-ons', leaseNamespace, health, clock, log = silentLogger, metrics } = options
  const name = `lanyard-addons-${addOns.map((addOn) => addOn.name).join('-')}`.slice(0, 63)
  const manager = new Manager({
    client,
    clock,
    log,
    metrics,
    health,
    leaderElection: leaseNamespace ? { namespace: leaseNamespace, name, identity: instance } : undefined,
  })
  const events = new EventRecorder({ client, controller: 'lanyard.io/addons', instance, clock, log })
  startAddOns(manager, { client, addOns, manager: false, events, clock, log })
  try {
    await manager.run(signal)
  } finally {
    await events.flush()
  }
}

/** A client of the hub: from the pod's own files in a cluster, else from the usual kubeconfig. */
export const hubClient = (env: Environment, userAgent = 'lanyard-addon'): Promise<Api> => usualClient(env, userAgent)
