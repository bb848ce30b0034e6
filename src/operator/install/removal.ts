import type { KubeObject } from '../../kube/index.ts'
import { namespace, pullSecret } from '../contract.ts'
import { hubInstall } from './hub.ts'
import { managedInstall } from './managed.ts'

/** Which object, without its content. */
export interface Named {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: string }
}

const named = ({ apiVersion, kind, metadata }: KubeObject): Named => ({
  apiVersion: apiVersion!,
  kind: kind!,
  metadata: { name: metadata.name!, ...(metadata.namespace ? { namespace: metadata.namespace } : {}) },
})

const isShared = ({ kind, metadata }: KubeObject): boolean =>
  (kind === 'Namespace' && metadata.name === namespace.operator) || (kind === 'Secret' && metadata.name === pullSecret)

// The other way round: who acts goes first, what it needs last. The pull secret is named whether it was asked for or not.
const reversed = (objects: KubeObject[], otherRemains: boolean): Named[] =>
  objects
    .filter((object) => !(otherRemains && isShared(object)))
    .map(named)
    .toReversed()

/**
 * What to delete, in this order, when a hub is given up and its ClusterManager is gone. `managedRemains`: this cluster is a
 * managed one too, and the other operator stays.
 */
export const hubRemoval = ({ managedRemains = false } = {}): Named[] =>
  reversed(hubInstall({ pullCredentials: '{}' }), managedRemains)

/** The same for a managed cluster whose Klusterlets are gone. */
export const managedRemoval = ({ hubRemains = false } = {}): Named[] =>
  reversed(managedInstall({ pullCredentials: '{}' }), hubRemains)
