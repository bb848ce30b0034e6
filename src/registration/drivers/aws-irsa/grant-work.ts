import { createHash } from 'node:crypto'
import { ManagedCluster } from '../../../api/index.ts'
import { failedFor } from '../../../aws/index.ts'
import { ConfigMap } from '../../../kube/index.ts'
import {
  ReconcileError,
  stalled,
  waiting,
  watching,
  type Controller,
  type Informer,
  type Manager,
  type Reason,
  type Reconcile,
} from '../../../runtime/index.ts'
import { awsAuthName, awsAuthNamespace } from './aws-auth.ts'
import { claimsAnArn } from './claim.ts'
import type { Grants } from './grants.ts'
import type { AwsIrsaHubOptions, HubSettings } from './hub-options.ts'
import { recordIn, recordSelector, type GrantRecord } from './record.ts'
import { mappingOf, type Wanted } from './wanted.ts'

/** After AWS could not be asked whether all is there. */
const unverifiedMs = 1_800_000

export interface GrantWorkOptions {
  manager: Manager
  grants: Grants
  settings: HubSettings
  /** Drops the credentials that are held. */
  forget: () => void
  options: AwsIrsaHubOptions
}

/** Keys are clusters: for each, what it is given is made, checked and taken away one after the other. */
export class GrantWork {
  readonly #grants: Grants
  readonly #settings: HubSettings
  readonly #options: AwsIrsaHubOptions
  readonly #forget: () => void
  readonly #clusters: Informer<ManagedCluster>
  readonly #records: Informer<ConfigMap>
  /** By the name of their role: as the watch shows them, or as we wrote them where it is behind. */
  readonly #known = new Map<string, GrantRecord>()
  readonly #byCluster = new Map<string, Set<string>>()
  readonly #controller: Controller
  readonly #listeners = new Set<(cluster: string) => void>()
  /** What the last try for a cluster met. */
  readonly #failures = new Map<string, Error>()
  /**
   * Those that acceptance has let go, and what they had then, by uid; undefined is everything. Until it does, a denied cluster
   * keeps its identity: it has works to remove. What is written down later is of a person who lets the cluster in again, and
   * does that before the hub hears of it.
   */
  readonly #leaving = new Map<string, ReadonlySet<string> | undefined>()
  readonly #granting = new Set<string>()

  constructor({ manager, grants, settings, forget, options }: GrantWorkOptions) {
    this.#grants = grants
    this.#settings = settings
    this.#options = options
    this.#forget = forget
    const { namespace } = settings
    this.#clusters = manager.informer(ManagedCluster)
    this.#records = manager.informer(ConfigMap, {
      namespace,
      labelSelector: recordSelector,
    })
    const know = (object: ConfigMap): void => this.#know(recordIn(object))
    this.#records.on({
      added: know,
      updated: know,
      deleted: (object) => {
        const known = this.#known.get(object.metadata.name!)
        if (known?.object.metadata.uid === object.metadata.uid) this.#known.delete(object.metadata.name!)
      },
    })
    const fieldSelector = `metadata.name=${awsAuthName}`
    const map = manager.informer(ConfigMap, { namespace: awsAuthNamespace, fieldSelector })
    const see = (object: ConfigMap | undefined): void => {
      grants.awsAuth.see(object)
      void this.#lookAtMappings()
    }
    map.on({ added: see, updated: see, deleted: () => see(undefined) })
    this.#controller = manager.controller({
      name: 'aws-irsa',
      reconcile: this.#reconcile,
      workers: 8,
      queue: { baseDelayMs: 500 },
      watches: [
        watching(this.#clusters, undefined, (cluster, old) => !old || standing(cluster) !== standing(old)),
        watching(this.#records, (object) => [recordIn(object).cluster]),
      ],
    })
    manager.controller({
      name: 'aws-irsa-mode',
      reconcile: this.#lookAtMode,
      watches: [
        (enqueue) => {
          enqueue('mode')
          return () => {}
        },
      ],
    })
  }

  /**
   * At the start, and as often as everything else is looked at: somebody may have moved the hub from `aws-auth` to access
   * entries, and once EKS reads `aws-auth` no more, whoever is only there is locked out.
   */
  readonly #lookAtMode: Reconcile = async (_, signal) => {
    const requeueAfterMs = this.#settings.verifyMs || undefined
    if (this.#settings.access || this.#known.size === 0) return { requeueAfterMs } // a first grant asks by itself
    try {
      await this.#grants.lookAtMode(signal)
    } catch (error) {
      if (signal.aborted) throw error
      // Clusters keep what they have. A hub without rights in AWS is none of its faults: people accept its clusters.
      this.#options.log.warn('how the hub maps roles could not be asked', { error })
      return { requeueAfterMs: requeueAfterMs && Math.min(requeueAfterMs, unverifiedMs) }
    }
    for (const record of this.#known.values())
      if (this.#grants.accessOf(record) !== record.access.at(-1)) this.#controller.enqueue(record.cluster)
    return { requeueAfterMs }
  }

  onChange(listener: (cluster: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  recordsOf(cluster: string): GrantRecord[] {
    return [...(this.#byCluster.get(cluster) ?? [])].flatMap((role) => this.#known.get(role) ?? [])
  }

  #know(record: GrantRecord): void {
    const { roleName, cluster, object } = record
    const before = this.#known.get(roleName)?.object.metadata
    const isOlder =
      before?.uid === object.metadata.uid && Number(object.metadata.resourceVersion) < Number(before?.resourceVersion)
    if (isOlder) return
    this.#known.set(roleName, record)
    this.#byCluster.set(cluster, (this.#byCluster.get(cluster) ?? new Set()).add(roleName))
  }

  /** Somebody may have changed any entry. */
  async #lookAtMappings(): Promise<void> {
    for (const record of this.#known.values()) {
      const isIn = record.granted !== '' && record.access.at(-1) === 'aws-auth'
      if (isIn && !(await this.#grants.awsAuth.has(mappingOf(record, 'aws-auth'))))
        this.#controller.enqueue(record.cluster)
    }
  }

  /** For acceptance: returns when everything is there, says what is still to come, or throws what went wrong. */
  async granted(cluster: ManagedCluster): Promise<Reason | undefined> {
    const name = cluster.metadata.name!
    if (this.#leaving.delete(name)) this.#failures.delete(name)
    const wanted = this.#grants.wanted(cluster)
    if (await this.#inPlace(cluster, wanted)) {
      this.#failures.delete(name)
      return undefined
    }
    const failed = this.#failures.get(name)
    if (failed === undefined) {
      this.#controller.enqueue(name)
      return { reason: 'Granting', message: `role ${wanted.roleArn} is being made` }
    }
    // This controller tries again by itself, and wakes the cluster when there is something new.
    const reason = failed instanceof ReconcileError ? failed.reason : 'Failed'
    throw stalled(reason, { message: failed.message, cause: failed })
  }

  /** For acceptance: returns when nothing is left in AWS. */
  async revoked(cluster: ManagedCluster, signal: AbortSignal): Promise<void> {
    const name = cluster.metadata.name!
    if (!this.#leaving.has(name)) this.#failures.delete(name) // what failed was another thing
    this.#leaving.set(name, this.#leaving.get(name))
    // From the server: what was made a moment ago must go as well.
    const left = this.#granting.has(name) ? [] : await this.#grants.records.of(name, signal)
    if (!this.#granting.has(name)) this.#leaving.set(name, this.#leaving.get(name) ?? new Set(left.map(uidOf)))
    if (!this.#granting.has(name) && !left.some((record) => this.#leaves(record))) {
      this.#leaving.delete(name)
      this.#failures.delete(name)
      return
    }
    const failed = this.#failures.get(name)
    if (!failed) this.#controller.enqueue(name)
    throw waiting('Revoking', {
      message: failed?.message ?? `cluster ${name}: its role in AWS is being removed`,
      afterMs: 60_000,
      cause: failed,
    })
  }

  #leaves(record: GrantRecord): boolean {
    const leaving = this.#leaving.get(record.cluster)
    return leaving === undefined || leaving.has(uidOf(record))
  }

  async #inPlace(cluster: ManagedCluster, wanted: Wanted): Promise<boolean> {
    const mine = this.recordsOf(cluster.metadata.name!)
    const record = mine.find(({ roleName }) => roleName === wanted.roleName)
    if (mine.length !== 1 || !this.#grants.isGranted(record, wanted, cluster.metadata.uid)) return false
    const access = this.#grants.accessOf(record!)
    return access !== 'aws-auth' || this.#grants.awsAuth.has(mappingOf(wanted, access))
  }

  readonly #reconcile: Reconcile = async (name, signal) => {
    try {
      return { requeueAfterMs: await this.#settle(name, signal) }
    } catch (error) {
      if (failedFor((error as Error).cause, 'ExpiredToken', 'InvalidCredentials')) this.#forget()
      // Somebody was quicker: nothing that anybody has to know.
      if (!(error instanceof ReconcileError && error.reason === 'RecordChanged')) this.#failed(name, error as Error)
      throw error
    }
  }

  #failed(name: string, failure: Error): void {
    const before = this.#failures.get(name)
    this.#failures.set(name, failure)
    // One that says the same as before is no news.
    if (before?.message !== failure.message) this.#wake(name)
  }

  #succeeded(name: string): void {
    this.#failures.delete(name)
    this.#wake(name)
  }

  /** Answers when to look again. */
  async #settle(name: string, signal: AbortSignal): Promise<number | undefined> {
    const cluster = this.#clusters.get(name)
    if (!cluster) return this.#forgotten(name, signal)
    if (this.#leaving.has(name)) return this.#revokeAll(name, (record) => this.#leaves(record), signal)
    if (cluster.metadata.deletionTimestamp || !cluster.spec.hubAcceptsClient)
      return this.#revokeAll(name, ({ clusterUid }) => clusterUid !== cluster.metadata.uid, signal)
    if (!claimsAnArn(cluster) && this.recordsOf(name).length === 0) return undefined
    // From the look at who leaves on, without a pause: a farewell that begins now waits for what is made here.
    this.#granting.add(name)
    try {
      return await this.#give(name, cluster, signal)
    } finally {
      this.#granting.delete(name)
    }
  }

  async #give(name: string, cluster: ManagedCluster, signal: AbortSignal): Promise<number | undefined> {
    const wanted = this.#grants.wanted(cluster)
    const inPlace = await this.#inPlace(cluster, wanted)
    const due = this.#verifyInMs(name, wanted)
    if (inPlace && (due === undefined || due > 0)) {
      if (this.#failures.has(name)) this.#succeeded(name)
      return due
    }
    try {
      this.#know(await this.#grants.grant(cluster, signal))
    } catch (error) {
      if (!inPlace || signal.aborted) throw error
      // It has all that it needs, as far as we know: an AWS that does not answer is no reason to say otherwise.
      this.#options.log.warn('what a cluster has in AWS could not be checked', { cluster: name, error })
      return unverifiedMs
    }
    if (!inPlace) this.#succeeded(name)
    return this.#verifyInMs(name, wanted)
  }

  /** Somebody took the finalizer off a cluster, or it was never accepted: what was written down for it goes all the same. */
  async #forgotten(name: string, signal: AbortSignal): Promise<undefined> {
    if (this.recordsOf(name).length === 0 && !this.#leaving.has(name)) return undefined
    if (await this.#options.client.of(ManagedCluster).find(name, { signal })) return undefined // so new that the watch is behind
    return this.#revokeAll(name, () => true, signal)
  }

  async #revokeAll(name: string, which: (record: GrantRecord) => boolean, signal: AbortSignal): Promise<undefined> {
    if (this.recordsOf(name).length === 0 && !this.#leaving.has(name)) return undefined
    for (const record of (await this.#grants.records.of(name, signal)).filter(which)) {
      await this.#grants.revoke(record, signal)
      this.#known.delete(record.roleName)
      this.#options.log.info('a role was removed', { cluster: name, role: record.roleArn })
    }
    if (this.#leaving.has(name)) this.#succeeded(name)
    return undefined
  }

  /** How long until AWS is asked again, up to a tenth longer for some, so that a fleet does not ask at once; undefined is never. */
  #verifyInMs(name: string, { roleName }: Wanted): number | undefined {
    const { verifyMs, bothMappingsMs } = this.#settings
    const record = this.recordsOf(name).find((one) => one.roleName === roleName)
    if (record && record.access.length > 1) return record.verifiedAt + bothMappingsMs - this.#options.clock.now()
    if (verifyMs === 0) return undefined
    const part = createHash('sha1').update(name).digest().readUInt32BE() / 2 ** 32
    return (record?.verifiedAt ?? 0) + verifyMs * (1 + part / 10) - this.#options.clock.now()
  }

  #wake(cluster: string): void {
    for (const listener of this.#listeners) listener(cluster)
  }
}

const uidOf = ({ object }: GrantRecord): string => object.metadata.uid ?? ''

/** What of a cluster matters here. */
const standing = ({ metadata, spec }: ManagedCluster): string =>
  JSON.stringify([
    metadata.uid,
    metadata.deletionTimestamp !== undefined,
    spec.hubAcceptsClient,
    Object.entries(metadata.annotations ?? {}).filter(([key]) => key.includes('managed-cluster')),
  ])
