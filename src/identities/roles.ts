import { group } from '../api/index.ts'
import { ClusterRole, type PolicyRule } from '../kube/index.ts'
import { applySet, watching } from '../runtime/index.ts'
import { clusterRole } from './contract.ts'
import type { Room } from './room.ts'

const roleLabel = 'identities.lanyard.io/role'

const clusterIdentities = ['awsclustercontrolleridentities', 'awsclusterstaticidentities', 'awsclusterroleidentities']
const accountIdentities = ['awsserviceaccountidentities']
const read = ['get', 'list', 'watch']
const write = [...read, 'create', 'update', 'patch', 'delete']

const rule = (apiGroup: string, resources: string[], verbs: string[]): PolicyRule => ({
  apiGroups: [apiGroup],
  resources,
  verbs,
})
/** `Cluster` of the specification's table: the one of Cluster API, and its half in AWS. Never `status`: what is said there is trusted. */
const clusters = [rule(group.clusterApi, ['clusters'], write), rule(group.infrastructure, ['awsclusters'], write)]
const everything = [rule(group.infrastructure, [...clusterIdentities, ...accountIdentities], write), ...clusters]

const role = (name: string, rules: PolicyRule[]): ClusterRole => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name, labels: { [roleLabel]: 'true' } },
  rules,
})

/**
 * The write table of the specification. The first two are bound for the whole cluster. That of workload operators is bound in their
 * namespaces, and the viewer's beside it for the whole cluster, because the identities that they may use have no namespace.
 */
export const identityRoles: ClusterRole[] = [
  role(clusterRole.infrastructureProvider, everything),
  role(clusterRole.managementOperator, everything),
  role(clusterRole.workloadOperator, [rule(group.infrastructure, accountIdentities, write), ...clusters]),
  role(clusterRole.viewer, [
    rule(group.infrastructure, [...clusterIdentities, ...accountIdentities, 'awsclusters'], read),
  ]),
]

/** Keeps the roles as they are above. They stay when the hub stops. */
export const keepRoles = (room: Room): void => {
  const present = room.manager.informer(ClusterRole, { labelSelector: roleLabel })
  room.manager.controller({
    name: 'aws-identity-roles',
    workers: 1,
    watches: [
      (enqueue) => {
        for (const { metadata } of identityRoles) enqueue(metadata.name!)
        return () => {}
      },
      watching(present),
    ],
    reconcile: async (name, signal) => {
      const wanted = identityRoles.filter(({ metadata }) => metadata.name === name)
      const targets = [{ resource: ClusterRole, cache: present }]
      await applySet(wanted, { client: room.client, targets, fieldManager: 'lanyard', signal })
      return {}
    },
  })
}
