import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { runIdentities } from '../../testkit/identity-hub.ts'
import { eventually, startControlPlane, startLocalAws, type ControlPlane, type LocalAws } from '../../testkit/index.ts'
import { crds, group, installCrds } from '../api/index.ts'
import { ClusterRole, ClusterRoleBinding, mayAccess, RoleBinding, type Client } from '../kube/index.ts'
import { clusterRole } from './contract.ts'

let plane: ControlPlane
let local: LocalAws
before(async () => {
  ;[plane, local] = await Promise.all([startControlPlane({ controllerManager: false }), startLocalAws()])
  await installCrds(plane.client(), crds({ conversion: 'none' }))
})
after(() => Promise.all([plane.stop(), local.stop()]))

const apiGroup = 'rbac.authorization.k8s.io'
const writes = ['create', 'update', 'patch', 'delete']
const resources = {
  awsclustercontrolleridentities: group.infrastructure,
  awsclusterstaticidentities: group.infrastructure,
  awsclusterroleidentities: group.infrastructure,
  awsserviceaccountidentities: group.infrastructure,
  awsclusters: group.infrastructure,
  clusters: group.clusterApi,
  secrets: '',
  serviceaccounts: '',
}

/** Who may write, as `yes` where all four verbs are allowed, `no` where none is. In their own namespace, and in another. */
const writable = async (
  client: Client,
  user: string,
  resource: string,
  namespace: string,
  subresource?: string,
): Promise<string> => {
  const attributes = {
    group: resources[resource as keyof typeof resources],
    resource,
    namespace,
    ...(subresource ? { subresource } : {}),
  }
  const answers = await Promise.all(
    writes.map((verb) => mayAccess(client, { username: user }, { ...attributes, verb })),
  )
  return answers.every(Boolean) ? 'yes' : answers.some(Boolean) ? 'partly' : 'no'
}

test('R3.63 the write table of the specification, as a matrix: who may write what, in their namespace and in others', async (t) => {
  const { client } = await runIdentities(t, plane, local)
  await eventually(async () => (await client.of(ClusterRole).find(clusterRole.viewer)) !== undefined)
  const subjects = (name: string) => [{ apiGroup, kind: 'User', name }]
  const roleRef = (name: string) => ({ apiGroup, kind: 'ClusterRole', name })
  for (const [user, role] of [
    ['infra', clusterRole.infrastructureProvider],
    ['ops', clusterRole.managementOperator],
    ['dev', clusterRole.viewer],
  ] as const)
    await client
      .of(ClusterRoleBinding)
      .create({ metadata: { name: user }, roleRef: roleRef(role), subjects: subjects(user) })
  await client.of(RoleBinding, 'default').create({
    metadata: { namespace: 'default', name: 'dev' },
    roleRef: roleRef(clusterRole.workloadOperator),
    subjects: subjects('dev'),
  })
  await eventually(() =>
    mayAccess(
      client,
      { username: 'dev' },
      { verb: 'create', group: group.infrastructure, resource: 'awsclusters', namespace: 'default' },
    ),
  )

  const table: Record<string, string> = {}
  for (const resource of Object.keys(resources))
    table[resource] = (
      await Promise.all(
        ['infra', 'ops', 'dev'].flatMap((user) =>
          ['default', 'kube-system'].map((ns) => writable(client, user, resource, ns)),
        ),
      )
    ).join(' ')
  // infrastructure provider, management operator, workload operator; each in its namespace and in another one
  assert.deepEqual(table, {
    awsclustercontrolleridentities: 'yes yes yes yes no no',
    awsclusterstaticidentities: 'yes yes yes yes no no',
    awsclusterroleidentities: 'yes yes yes yes no no',
    awsserviceaccountidentities: 'yes yes yes yes yes no',
    awsclusters: 'yes yes yes yes yes no',
    clusters: 'yes yes yes yes yes no',
    secrets: 'no no no no no no',
    serviceaccounts: 'no no no no no no',
  })
  // What the controller says is not for people to say.
  for (const user of ['infra', 'ops', 'dev'])
    assert.equal(await writable(client, user, 'awsclusters', 'default', 'status'), 'no')
  const reads = { verb: 'list', group: group.infrastructure, resource: 'awsclusterroleidentities' }
  assert.equal(await mayAccess(client, { username: 'dev' }, reads), true)
})

test('R3.63 a role that somebody widens is put right', async (t) => {
  const { client } = await runIdentities(t, plane, local)
  const roles = client.of(ClusterRole)
  await eventually(async () => (await roles.find(clusterRole.workloadOperator)) !== undefined)
  const rule = { apiGroups: ['*'], resources: ['*'], verbs: ['*'] }
  await roles.patch(clusterRole.workloadOperator, { json: [{ op: 'add', path: '/rules/-', value: rule }] })
  await eventually(async () => {
    const { rules } = await roles.get(clusterRole.workloadOperator)
    assert.ok(rules?.every(({ verbs }) => !verbs.includes('*')))
  })
})
