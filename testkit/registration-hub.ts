import type { TestContext } from 'node:test'
import { finalizer, ManagedCluster, ManifestWork } from '../src/api/index.ts'
import {
  ClusterRole,
  ClusterRoleBinding,
  isNotFound,
  mayAccess,
  Namespace,
  RoleBinding,
  type Client,
  type KubeObject,
  type Resource,
} from '../src/kube/index.ts'
import { Manager, type Clock, type Logger } from '../src/runtime/index.ts'
import { groupsOf } from '../src/registration/contract.ts'
import type { HubDriver } from '../src/registration/drivers/driver.ts'
import { acceptance } from '../src/registration/hub/acceptance.ts'
import type { Hub, HubSettings } from '../src/registration/hub/hub.ts'
import { hubFor } from '../src/registration/hub/index.ts'
import { keepSharedRoles } from '../src/registration/hub/shared-roles.ts'
import type { ControlPlane } from './control-plane.ts'

/** A driver that gives nothing, and writes down what it was asked. */
export const plainDriver = (change: Partial<HubDriver> = {}): HubDriver & { asked: string[] } => {
  const asked: string[] = []
  return {
    name: 'plain',
    asked,
    serves: () => true,
    waitsForPerson: () => undefined,
    grant: async ({ metadata }) => void asked.push(`grant ${metadata.name}`),
    revoke: async ({ metadata }) => void asked.push(`revoke ${metadata.name}`),
    ...change,
  }
}

export interface TestHubOptions {
  settings?: Partial<HubSettings>
  gates?: Partial<HubSettings['gates']>
  clock?: Clock
  log?: Logger
  userAgent?: string
  /** The controllers to run; those of acceptance unless told. */
  controllers?: ((hub: Hub) => void)[]
}

export interface TestHub {
  hub: Hub
  /** An administrator's client that is not the hub's. */
  client: Client
  /** Ends as a process does that is killed: what is under way is cut. */
  stop(): Promise<void>
}

/** A hub's controllers in this process, until the test ends. */
export const runHub = async (t: TestContext, plane: ControlPlane, options: TestHubOptions = {}): Promise<TestHub> => {
  const { userAgent = 'test-hub', clock, log } = options
  const client = plane.client({ user: 'hub', groups: ['system:masters'], userAgent })
  const manager = new Manager({ client, clock, log, gracePeriodMs: 0 })
  const settings: HubSettings = {
    gates: { managedClusterAutoApproval: false, defaultClusterSet: true, resourceCleanup: true, ...options.gates },
    drivers: [plainDriver()],
    labels: {},
    farewellMs: 3_600_000,
    ...options.settings,
  }
  const hub = hubFor(manager, { client, settings, clock, log })
  for (const add of options.controllers ?? [keepSharedRoles, acceptance]) add(hub)
  const end = new AbortController()
  const running = manager.run(end.signal)
  const stop = async (): Promise<void> => {
    end.abort()
    await running
    await hub.events.flush()
    client.close()
  }
  t.after(stop)
  return { hub, client: plane.client(), stop }
}

/** A ManagedCluster as an agent makes it, accepted unless told otherwise. */
export const createCluster = (client: Client, name: string, accepts = true): Promise<ManagedCluster> =>
  client.of(ManagedCluster).create({ metadata: { name }, spec: { hubAcceptsClient: accepts } })

/** As an administrator accepts or denies. */
export const setAccepts = (client: Client, name: string, accepts: boolean): Promise<ManagedCluster> =>
  client.of(ManagedCluster).patch(name, { merge: { spec: { hubAcceptsClient: accepts } } })

/** A work that an agent has taken on: it holds it with its finalizer. */
export const createWork = (
  client: Client,
  cluster: string,
  name: string,
  metadata: { finalizers?: string[]; annotations?: Record<string, string> } = { finalizers: [finalizer.manifestWork] },
): Promise<ManifestWork> =>
  client
    .of(ManifestWork, cluster)
    .create({ metadata: { name, namespace: cluster, ...metadata }, spec: { workload: { manifests: [] } } })

/** Who an agent is, by certificate. */
export const agentOf = (cluster: string) => ({
  username: `system:open-cluster-management:${cluster}:agent1`,
  groups: [groupsOf(cluster)[0]!, 'system:open-cluster-management:managed-clusters', 'system:authenticated'],
})

/** Whether the agent of a cluster may do something: `can('c1', 'get', 'managedclusteraddons.addon…', 'c1')`. */
export const can = (
  client: Client,
  cluster: string,
  verb: string,
  what: { group: string; resource: string; subresource?: string; namespace?: string; name?: string },
): Promise<boolean> => mayAccess(client, agentOf(cluster), { verb, ...what })

/** Everything that the hub made for a cluster, as `Kind name`. */
export const objectsOf = async (client: Client, cluster: string): Promise<string[]> => {
  const labelSelector = `open-cluster-management.io/cluster-name=${cluster}`
  const kinds: Resource<KubeObject>[] = [Namespace, ClusterRole, ClusterRoleBinding, RoleBinding]
  const lists = await Promise.all(
    kinds.map(async (kind) => {
      const { items } = await client.of(kind).list({ labelSelector, metadataOnly: true })
      return items.map(({ metadata }) => `${kind.kind} ${metadata.name}`)
    }),
  )
  return lists.flat().toSorted()
}

/** The cluster as it is on the server; undefined when it is gone. */
export const clusterOf = (client: Client, name: string): Promise<ManagedCluster | undefined> =>
  client
    .of(ManagedCluster)
    .get(name)
    .catch((error: unknown) => {
      if (isNotFound(error)) return undefined
      throw error
    })
