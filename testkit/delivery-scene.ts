import assert from 'node:assert/strict'
import { ClusterPermission, ManifestWork, type PermissionSpec } from '../src/api/index.ts'
import {
  ClusterRole,
  ClusterRoleBinding,
  isConflict,
  Namespace,
  Role,
  RoleBinding,
  type Resource,
} from '../src/kube/index.ts'
import { workNameOf } from '../src/permissions/contract.ts'
import { findCondition } from '../src/runtime/conditions.ts'
import type { ControlPlane } from './control-plane.ts'
import { eventually } from './eventually.ts'
import { accept, sendTo, startAgent, startHub } from './lanyard.ts'

/** A hub and a managed cluster, both real, and the words that tests about permissions use. */
export type DeliveryScene = Awaited<ReturnType<typeof startDeliveryScene>>

export const slow = { timeoutMs: 60_000 }
export const rbacKinds = [ClusterRole, ClusterRoleBinding, Role, RoleBinding] as unknown as Resource[]

/** Starts `lanyard hub` and `lanyard agent`, and lets the cluster in. */
export const startDeliveryScene = async (hubPlane: ControlPlane, managed: ControlPlane, cluster: string) => {
  const hub = hubPlane.client()
  const there = managed.client()
  await startHub(hubPlane)
  await sendTo(managed, hubPlane)
  const agent = await startAgent(managed, cluster)
  await accept(hubPlane, cluster)
  await agent.process.ready()

  const permissions = () => hub.of(ClusterPermission, cluster)
  /** Waits until a condition, of the present generation, says this. */
  const saying = (name: string, type: string, status: string, message = /.*/s, timeoutMs = slow.timeoutMs) =>
    eventually(
      async () => {
        const permission = await permissions().get(name)
        const condition = findCondition(permission, type)
        assert.equal(condition?.status, status, JSON.stringify(permission.status?.conditions))
        assert.equal(condition.observedGeneration, permission.metadata.generation)
        assert.match(condition.message, message)
        return permission
      },
      { timeoutMs },
    )
  return {
    hub,
    there,
    permissions,
    saying,
    create: (name: string, spec: PermissionSpec) =>
      permissions().create({ metadata: { name, namespace: cluster }, spec }),
    change: async (name: string, spec: (present: PermissionSpec) => PermissionSpec) => {
      for (;;) {
        const present = await permissions().get(name)
        try {
          return await permissions().update({ ...present, spec: spec(present.spec!) })
        } catch (error) {
          // The hub writes the status now and then.
          if (!isConflict(error)) throw error
        }
      }
    },
    applied: (name: string) => saying(name, 'AppliedRBACManifestWork', 'True'),
    /** Deletes it, and waits until its work is gone. */
    remove: async (name: string) => {
      const { metadata } = await permissions().get(name)
      await permissions().delete(name)
      const work = workNameOf(name, metadata.uid!)
      await eventually(async () => (await hub.of(ManifestWork, cluster).find(work)) === undefined, slow)
    },
    namespaceThere: (name: string, labels: Record<string, string> = {}) =>
      there.of(Namespace).create({ metadata: { name, labels } }),
    /** What the managed cluster has under a name, as `Kind namespace`. */
    delivered: async (name: string): Promise<string[]> => {
      const lists = await Promise.all(
        rbacKinds.map(async (kind) => {
          const { items } = await there.of(kind).list({ fieldSelector: `metadata.name=${name}` })
          return items.map(({ metadata }) => `${kind.kind} ${metadata.namespace ?? '-'}`)
        }),
      )
      return lists.flat().toSorted()
    },
  }
}
