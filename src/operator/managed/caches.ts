import { Klusterlet } from '../../api/index.ts'
import {
  ClusterRoleBinding,
  CustomResourceDefinition,
  keyOf,
  Namespace,
  RoleBinding,
  Secret,
  ServiceAccount,
  type KubeObject,
} from '../../kube/index.ts'
import { secretName } from '../../registration/contract.ts'
import { watching, type Informer, type Watch } from '../../runtime/index.ts'
import { createdBy, externalKubeconfigSecret, pullSecret } from '../contract.ts'
import { Deployment, Job } from '../objects.ts'
import type { Operator } from '../operator.ts'
import { kept, type KeptKind } from '../set.ts'
import { sharedOwner } from './desired.ts'
import { placeOf } from './place.ts'

/** Secrets that the operator follows, each by its name, in whatever namespace: it may read no others. */
export interface FollowedSecrets {
  readonly bootstrap: Informer<Secret>
  readonly hub: Informer<Secret>
  readonly external: Informer<Secret>
  readonly pull: Informer<Secret>
}

/** What the reconciler of Klusterlets reads. */
export interface AgentCaches {
  readonly klusterlets: Informer<Klusterlet>
  readonly deployments: Informer<Deployment>
  readonly jobs: Informer<Job>
  readonly secrets: FollowedSecrets
  readonly definitions: Informer<CustomResourceDefinition>
  /** Namespaces and CRDs: several Klusterlets may need the same. */
  readonly shared: readonly KeptKind[]
  /** Accounts, bindings and the pull secret of one agent. */
  readonly own: readonly KeptKind[]
}

/** The caches, and what brings a Klusterlet to the reconciler. */
export const agentCaches = ({ manager, settings }: Operator): { caches: AgentCaches; watches: Watch[] } => {
  const labelled = { labelSelector: createdBy.klusterlet }
  const named = (name: string): Informer<Secret> => manager.informer(Secret, { fieldSelector: `metadata.name=${name}` })
  const secrets: FollowedSecrets = {
    bootstrap: named(secretName.bootstrap),
    hub: named(secretName.hub),
    external: named(externalKubeconfigSecret),
    pull: named(pullSecret),
  }
  const klusterlets = manager.informer(Klusterlet)
  const definitions = manager.informer(CustomResourceDefinition, labelled)
  const caches: AgentCaches = {
    klusterlets,
    deployments: manager.informer(Deployment, labelled),
    jobs: manager.informer(Job, labelled),
    secrets,
    definitions,
    shared: [kept(Namespace, manager.informer(Namespace, labelled)), kept(CustomResourceDefinition, definitions)],
    own: [
      kept(ServiceAccount, manager.informer(ServiceAccount, labelled)),
      kept(RoleBinding, manager.informer(RoleBinding, labelled)),
      kept(ClusterRoleBinding, manager.informer(ClusterRoleBinding, labelled)),
      kept(Secret, secrets.pull),
    ],
  }
  const all = (): string[] => klusterlets.list().map(keyOf)
  const owners = ({ metadata }: KubeObject): string[] => {
    const owner = metadata.labels?.[createdBy.klusterlet]
    return owner === sharedOwner ? all() : owner ? [owner] : []
  }
  const inNamespace = ({ metadata }: KubeObject): string[] =>
    klusterlets
      .list()
      .filter((one) => placeOf(one).namespace === metadata.namespace)
      .map(keyOf)
  const isSource = ({ metadata }: KubeObject): boolean => metadata.namespace === settings.namespace
  const watches = [
    watching(klusterlets, () => all()),
    watching(klusterlets),
    watching(caches.deployments, owners),
    watching(caches.jobs, owners),
    ...[...caches.shared, ...caches.own].map(({ cache }) => watching(cache, owners)),
    ...[secrets.bootstrap, secrets.hub, secrets.external].map((secret) => watching(secret, inNamespace)),
    watching(secrets.pull, all, isSource),
  ]
  return { caches, watches }
}
