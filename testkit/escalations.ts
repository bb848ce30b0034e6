import assert from 'node:assert/strict'
import { ClusterPermission, ClusterSetPermission, label, ManagedCluster } from '../src/api/index.ts'
import { ClusterRole } from '../src/kube/index.ts'
import { annotation } from '../src/permissions/contract.ts'
import { rule } from './people.ts'
import { clusterRole, her, pods, requested, toHer, user, type PermissionScene } from './permission-scene.ts'

/** What is tried, and the reason that is given for not letting it through. */
export type Attempt = [title: string, attempt: () => Promise<unknown>, reason: RegExp]

const anywhere = { matchLabels: { any: 'label' } }

/** Ways to gain more than one holds. */
export const escalations = (scene: PermissionScene): Attempt[] => {
  const { admin, mallory, write, edit, forSet, decided, withheld, delivered, approve } = scene
  return [
    [
      'a right that she does not hold',
      () => write(toHer([rule('get', 'secrets')])),
      /may not get secrets; ask an administrator for the verbs escalate and bind/,
    ],
    ['every verb on what she may get', () => write(toHer([rule('*', 'pods')])), /may not \* pods/],
    ['every resource for a verb that she has', () => write(toHer([rule('get', '*')])), /may not get \*/],
    [
      'the same resource in every group',
      () => write(toHer([{ verbs: ['get'], apiGroups: ['*'], resources: ['pods'] }])),
      /may not get pods\.\*/,
    ],
    [
      'all of a kind of which she holds one by name',
      () => write(toHer([rule('get', 'configmaps')])),
      /may not get configmaps/,
    ],
    [
      'another one by name',
      () => write(toHer([rule('get', 'configmaps', ['open', 'closed'])])),
      /may not get configmaps "closed"/,
    ],
    ['a subresource of what she holds', () => write(toHer([rule('create', 'pods/exec')])), /may not create pods\/exec/],
    ['subresources of every resource', () => write(toHer([rule('get', '*/log')])), /may not get \*\/log/],
    ['a path outside the API', () => write(toHer([{ verbs: ['get'], nonResourceURLs: ['/*'] }])), /may not get \/\*/],
    [
      'what she holds only in the namespace of the cluster on the hub',
      () =>
        write({
          roles: [{ namespace: 'default', rules: [rule('delete', 'pods')] }],
          roleBindings: [{ namespace: 'default', subject: her, roleRef: { kind: 'Role' } }],
        }),
      /hold on the hub in all namespaces: they may not delete pods/,
    ],
    [
      'what she holds in a namespace of the same name on the hub',
      () =>
        write({
          roles: [{ namespace: 'default', rules: [rule('get', 'secrets')] }],
          roleBindings: [{ namespace: 'default', subject: her, roleRef: { kind: 'Role' } }],
        }),
      /may not get secrets/,
    ],
    [
      'the same by a namespace selector',
      () =>
        write({
          roles: [{ namespaceSelector: anywhere, rules: [rule('get', 'secrets')] }],
          roleBindings: [{ namespaceSelector: anywhere, subject: her, roleRef: { kind: 'Role' } }],
        }),
      /may not get secrets/,
    ],
    [
      'one small rule among many that she holds',
      () => write(toHer([...pods, rule('list', 'pods'), rule('impersonate', 'users')])),
      /may not impersonate users/,
    ],
    [
      'cluster-admin of the hub, as a copy',
      () =>
        write({
          roleRefs: [{ kind: 'ClusterRole', name: 'cluster-admin' }],
          clusterRoleBinding: { subject: her, roleRef: clusterRole('cluster-admin') },
        }),
      /may not \* \*\.\*/,
    ],
    [
      'a role of the hub that gathers others',
      () => write({ roleRefs: [{ kind: 'ClusterRole', name: 'admin' }] }),
      /may not [a-z]+ [a-z/]+.*and more/,
    ],
    [
      'a Role of kube-system on the hub',
      () => write({ roleRefs: [{ kind: 'Role', namespace: 'kube-system', name: 'strong' }] }),
      /may not \* secrets/,
    ],
    [
      'cluster-admin of the managed cluster',
      () => write({ clusterRoleBinding: { subject: her, roleRef: clusterRole('cluster-admin') } }),
      /may not bind ClusterRole cluster-admin, which only the managed cluster knows \(verb bind\)/,
    ],
    [
      'admin of the managed cluster, in one namespace',
      () =>
        write({
          roleBindings: [{ namespace: 'kube-system', subject: her, roleRef: { kind: 'ClusterRole', name: 'admin' } }],
        }),
      /may not bind ClusterRole admin/,
    ],
    [
      'a Role of the managed cluster, wherever it is',
      () =>
        write({
          roleBindings: [{ namespaceSelector: anywhere, subject: her, roleRef: { kind: 'Role', name: 'deployer' } }],
        }),
      /may not bind Role deployer/,
    ],
    [
      'whatever the managed cluster has under the name of the permission',
      () =>
        write(
          { roleBindings: [{ namespace: 'default', subject: her, roleRef: { kind: 'ClusterRole' } }] },
          { name: 'cluster-admin' },
        ),
      /names no role, and there is no clusterRole/,
    ],
    [
      'a Role of the same name in another namespace',
      () =>
        write(
          {
            roles: [{ namespace: 'default', rules: pods }],
            roleBindings: [{ namespace: 'kube-system', subject: her, roleRef: { kind: 'Role' } }],
          },
          { name: 'admin' },
        ),
      /none of roles is for that place/,
    ],
    [
      'a Role of the same name where another selector matches',
      () =>
        write({
          roles: [{ namespaceSelector: anywhere, rules: pods }],
          roleBindings: [{ namespaceSelector: {}, subject: her, roleRef: { kind: 'Role' } }],
        }),
      /none of roles is for that place/,
    ],
    [
      "rights for somebody else's ManagedServiceAccount, whose token she can read",
      () =>
        write({
          clusterRole: { rules: [rule('get', 'secrets')] },
          clusterRoleBinding: {
            subject: {
              kind: 'ManagedServiceAccount',
              apiGroup: 'authentication.open-cluster-management.io',
              name: 'robot',
            },
          },
        }),
      /may not get secrets/,
    ],
    [
      "another cluster's ManagedServiceAccount",
      () =>
        write({
          clusterRole: { rules: pods },
          clusterRoleBinding: {
            subject: {
              kind: 'ManagedServiceAccount',
              apiGroup: 'authentication.open-cluster-management.io',
              name: 'robot',
              namespace: 'c2',
            },
          },
        }),
      /only the cluster's own ManagedServiceAccounts/,
    ],
    [
      'to be taken for the author that she is not',
      () =>
        write(toHer([rule('get', 'secrets')]), {
          annotations: { [annotation.author]: JSON.stringify({ username: 'admin', groups: ['system:masters'] }) },
        }),
      /user "mallory" may not give more/,
    ],
    [
      'to approve what she writes',
      () =>
        write(toHer([rule('get', 'secrets')]), {
          annotations: {
            ...requested,
            [annotation.approve]: 'x',
            [annotation.approver]: JSON.stringify({ username: 'admin' }),
          },
        }),
      /may not approve: that needs the verb approve on clusterpermissions/,
    ],
    [
      'to approve what waits',
      async () => {
        await write(toHer([rule('get', 'secrets')]), { name: 'waiting', annotations: requested })
        await approve('waiting', mallory)
      },
      /user "mallory" may not approve/,
    ],
    [
      'to have it delivered before somebody approves',
      () => withheld('waiting'),
      /waits: user "mallory", who wrote it, may not get secrets; to approve it: kubectl -n c1 annotate/,
    ],
    [
      'to write the decision into the status herself',
      async () => {
        const { status } = await decided('waiting')
        const { wanted } = status!.authorization!
        await mallory
          .of(ClusterPermission, 'c1')
          .patch(
            'waiting',
            { merge: { status: { authorization: { wanted, granted: wanted, how: 'Approval', by: 'admin' } } } },
            { subresource: 'status' },
          )
      },
      /status\.authorization: user "mallory" may not write it: that needs the verb approve/,
    ],
    [
      'to have an old approval count for an edit',
      async () => {
        await write(toHer([rule('get', 'secrets')]), { name: 'edited', annotations: requested })
        await approve('edited')
        await delivered('edited')
        await edit('edited', { spec: toHer([rule('*', 'secrets')]) })
        await withheld('edited')
      },
      /waits: user "mallory", who wrote it, may not \* secrets/,
    ],
    [
      'to have it count for other subjects',
      async () => {
        await write(toHer([rule('get', 'secrets')]), { name: 'more-people', annotations: requested })
        await approve('more-people')
        await delivered('more-people')
        await edit('more-people', {
          spec: { clusterRoleBinding: { subjects: [her, { kind: 'User', name: 'friend' }] } },
        })
        await withheld('more-people')
      },
      /waits: user "mallory"/,
    ],
    [
      "to approve in an administrator's name what changed meanwhile",
      async () => {
        await write(toHer([rule('get', 'secrets')]), { name: 'swapped', annotations: requested })
        const { status } = await decided('swapped')
        await edit('swapped', { spec: toHer([rule('*', '*')]) })
        await edit(
          'swapped',
          { metadata: { annotations: { [annotation.approve]: status!.authorization!.wanted } } },
          admin,
        )
      },
      /what is there now has the fingerprint [0-9a-f]{32}: it changed since it was looked at/,
    ],
    [
      "to add herself to an administrator's permission",
      async () => {
        await write(
          { clusterRole: { rules: [rule('*', '*')] }, clusterRoleBinding: { subject: { kind: 'User', name: 'boss' } } },
          { as: admin, name: 'of-admin' },
        )
        await edit('of-admin', { spec: { clusterRoleBinding: { subject: her } } })
      },
      /user "mallory" may not give more/,
    ],
    [
      'to take over the authorship by touching the metadata',
      async () => {
        const before = await decided('of-admin')
        await edit('of-admin', {
          metadata: {
            labels: { touched: 'yes' },
            annotations: { [annotation.author]: JSON.stringify({ username: user }) },
          },
        })
        const now = await decided('of-admin')
        assert.equal(now.metadata.annotations?.[annotation.author], before.metadata.annotations?.[annotation.author])
        assert.equal(now.metadata.labels?.['touched'], 'yes')
        throw new Error('without effect: the author stays')
      },
      /without effect/,
    ],
    [
      'to gain when a role that she refers to grows',
      async () => {
        await write(
          {
            roleRefs: [{ kind: 'ClusterRole', name: 'team' }],
            clusterRoleBinding: { subject: her, roleRef: clusterRole('team') },
          },
          { name: 'with-team' },
        )
        await delivered('with-team')
        await admin.of(ClusterRole).patch('team', { merge: { rules: [...pods, rule('get', 'secrets')] } })
        await withheld('with-team')
      },
      /waits: user "mallory", who wrote it, may not get secrets/,
    ],
    [
      'to gain when a role that gathers others gathers more',
      async () => {
        await write(
          {
            roleRefs: [{ kind: 'ClusterRole', name: 'gathers' }],
            clusterRoleBinding: { subject: her, roleRef: clusterRole('gathers') },
          },
          { name: 'with-gathers' },
        )
        await delivered('with-gathers')
        await admin
          .of(ClusterRole)
          .create({ metadata: { name: 'gathered', labels: { 'gathers/it': 'yes' } }, rules: [rule('get', 'secrets')] })
        await withheld('with-gathers')
      },
      /waits: user "mallory", who wrote it, may not get secrets/,
    ],
    [
      'to gather more into it herself',
      () =>
        mallory
          .of(ClusterRole)
          .create({ metadata: { name: 'hers', labels: { 'gathers/it': 'yes' } }, rules: [rule('*', 'secrets')] }),
      /attempting to grant RBAC permissions not currently held/,
    ],
    [
      'to refer to a role before it exists',
      async () => {
        await write(
          {
            roleRefs: [{ kind: 'ClusterRole', name: 'later' }],
            clusterRoleBinding: { subject: her, roleRef: clusterRole('later') },
          },
          { name: 'with-later' },
        )
        await decided('with-later')
        await admin.of(ClusterRole).create({ metadata: { name: 'later' }, rules: [rule('*', '*')] })
        await withheld('with-later')
      },
      /waits: user "mallory", who wrote it, may not \* \*/,
    ],
    [
      'a set that she may not use',
      () => forSet('payments', toHer(pods)),
      /may not use set payments \(verb create on managedclustersets\/bind\)/,
    ],
    [
      'more than she holds, on all clusters of a set that she may use',
      () => forSet('hers', toHer([rule('get', 'secrets')])),
      /may not get secrets/,
    ],
    [
      'roles that the managed clusters of a set have',
      () => forSet('hers', { clusterRoleBinding: { subject: her, roleRef: clusterRole('cluster-admin') } }),
      /may not bind ClusterRole cluster-admin/,
    ],
    [
      'to have her set permission follow her to another set',
      async () => {
        const { metadata } = await forSet('hers', toHer(pods))
        await mallory.of(ClusterSetPermission).patch(metadata.name!, { merge: { spec: { clusterSet: 'payments' } } })
      },
      /may not use set payments/,
    ],
    [
      'to put a cluster into her set',
      () => mallory.of(ManagedCluster).patch('c2', { merge: { metadata: { labels: { [label.clusterSet]: 'hers' } } } }),
      /may not (put cluster c2 into set hers|take cluster c2 out of set default)/,
    ],
    [
      'to write as somebody else',
      () =>
        mallory
          .as({ user: 'admin', groups: ['system:masters'] })
          .of(ClusterPermission, 'c1')
          .create({ metadata: { name: 'as', namespace: 'c1' }, spec: toHer([rule('*', '*')]) }),
      /cannot impersonate/,
    ],
  ]
}
