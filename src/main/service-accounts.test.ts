import assert from 'node:assert/strict'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  accept,
  eventually,
  freePort,
  mustRun,
  runProgram,
  sendTo,
  startAgent,
  startControlPlane,
  startHub,
  startRunner,
  type ControlPlane,
  type LanyardProcess,
  type Runner,
} from '../../testkit/index.ts'
import { Deployment, Pod } from '../../testkit/runner/index.ts'
import { ClusterPermission, ManagedCluster, ManagedClusterAddOn, ManagedServiceAccount } from '../api/index.ts'
import {
  clientFor,
  ConfigMap,
  decoded,
  isForbidden,
  isUnauthorized,
  kubeconfigText,
  Namespace,
  Secret,
  ServiceAccount,
  type Client,
} from '../kube/index.ts'
import { findCondition, isTrue } from '../runtime/index.ts'
import { openTokens } from '../serviceaccounts/tokens/index.ts'

/** Hub and managed cluster are two API servers; hub, agent and the add-on's Deployment are processes. */
let hubPlane: ControlPlane
let managed: ControlPlane
let runner: Runner
let agent: LanyardProcess
let hub: Client
let there: Client
const c = 'c1'
const addOn = 'managed-serviceaccount'
const namespace = 'open-cluster-management-agent-addon'
const patience = { timeoutMs: 150_000 }

before(async () => {
  ;[hubPlane, managed] = await Promise.all([startControlPlane(), startControlPlane()])
  runner = await startRunner(managed)
  hub = hubPlane.client()
  there = managed.client()
  await startHub(hubPlane, { args: ['--service-accounts-install-on=accounts=yes'] })
  await sendTo(managed, hubPlane)
  await there.of(Namespace).create({ metadata: { name: namespace } })
  agent = await startAgent(managed, c, { args: [`--spoke-external-server-urls=${managed.server}`] })
  await accept(hubPlane, c)
  await agent.process.ready()
})
after(async () => {
  await runner?.stop()
  await Promise.all([hubPlane?.stop(), managed?.stop()])
})

const create = (name: string, spec: ManagedServiceAccount['spec'] = {}) =>
  hub.of(ManagedServiceAccount).create({ metadata: { name, namespace: c }, spec })
const label = (value: string | null) =>
  hub.of(ManagedCluster).patch(c, { merge: { metadata: { labels: { accounts: value } } } })

/** The managed cluster with what is in the Secret on the hub, and nothing else. */
const reported = (name: string): Promise<Client> =>
  eventually(async () => {
    const now = await hub.of(ManagedServiceAccount, c).get(name)
    for (const type of ['AllServiceAccountPresent', 'SecretCreated', 'TokenReported'])
      assert.ok(
        isTrue(now, type),
        JSON.stringify({ status: now.status, addOn: await hub.of(ManagedClusterAddOn, c).find(addOn) }),
      )
    const { token, 'ca.crt': ca } = decoded(await hub.of(Secret, c).get(name))!
    return clientWith({ token, ca })
  }, patience)
const clientWith = (credential: { token: string | undefined; ca: string | undefined }): Client =>
  clientFor(
    { source: 'the token Secret', server: managed.server, credentials: async () => credential },
    { userAgent: 'consumer' },
  )
const whoAmI = async (client: Client) => {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const { status } = await client.json<{ status: { userInfo: { username: string } } }>({ method: 'POST', path, body })
  return status.userInfo.username
}

test('R5.3 R5.6 R5.7 R5.24 R5.25 a cluster with the right label gets the add-on as a Deployment of its own, with its own credential and rights; tokens authenticate as the account, which may do nothing', async () => {
  await label('yes')
  await create('robot', { rotation: { validity: '1h' } })
  const robot = await reported('robot')
  assert.equal(await whoAmI(robot), `system:serviceaccount:${namespace}:robot`)
  await assert.rejects(robot.of(ConfigMap, 'default').list(), isForbidden)
  await eventually(async () => {
    const deployment = await there.of(Deployment, namespace).get('managed-serviceaccount-addon-agent')
    assert.equal(deployment.status?.readyReplicas, 1)
    const now = await hub.of(ManagedClusterAddOn, c).get(addOn)
    assert.equal(findCondition(now, 'Available')?.status, 'True', JSON.stringify(now.status))
  }, patience)

  // It is nobody but itself: on the hub by its certificate, on the cluster by its own account, and is refused nothing it asks for.
  const user = `system:open-cluster-management:cluster:${c}:addon:${addOn}:agent:${addOn}`
  const { entries } = await hubPlane.requestsBy({ user })
  assert.ok(entries.some(({ verb, uri }) => verb === 'create' && uri.startsWith(`/api/v1/namespaces/${c}/secrets`)))
  assert.ok(entries.every(({ uri, code }) => !uri.includes('/secrets') || (code ?? 0) < 300))
  const local = await managed.requestsBy({ user: `system:serviceaccount:${namespace}:${addOn}` })
  assert.deepEqual(
    local.entries.filter(({ code }) => code === 403).map(({ verb, uri }) => `${verb} ${uri}`),
    [],
  )
  assert.ok(local.entries.some(({ subresource }) => subresource === 'token'))
  assert.ok(local.entries.some(({ uri, code }) => uri === '/openid/v1/jwks' && code === 200))
  robot.close()
})

test('R4.28 the token of a ManagedServiceAccount may do on the cluster what a ClusterPermission gives it, is refused everything else, and loses it with the permission', async () => {
  await there.of(ConfigMap).create({ metadata: { name: 'menu', namespace: 'default' }, data: { soup: 'tomato' } })
  const robot = await reported('robot')
  const permissions = hub.of(ClusterPermission, c)
  await permissions.create({
    metadata: { name: 'robot-reads', namespace: c },
    spec: {
      roles: [
        { namespace: 'default', rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] }] },
      ],
      roleBindings: [
        {
          namespace: 'default',
          roleRef: { kind: 'Role' },
          subject: {
            apiGroup: 'authentication.open-cluster-management.io',
            kind: 'ManagedServiceAccount',
            name: 'robot',
          },
        },
      ],
    },
  })
  const menu = await eventually(() => robot.of(ConfigMap, 'default').get('menu'), patience)
  assert.deepEqual(menu.data, { soup: 'tomato' })
  await assert.rejects(robot.of(ConfigMap, 'default').delete('menu'), isForbidden)
  await assert.rejects(robot.of(ConfigMap, 'kube-system').list(), isForbidden)
  await assert.rejects(robot.of(Secret, namespace).list(), isForbidden)
  await assert.rejects(robot.of(ServiceAccount, namespace).list(), isForbidden)
  await permissions.delete('robot-reads')
  await eventually(() => assert.rejects(robot.of(ConfigMap, 'default').get('menu'), isForbidden), patience)
  robot.close()
})

test('R5.15 R5.19 R5.24 R5.26 R5.28 a program with lanyard/tokens asks the cluster on and on while the agent renews the token, because its time is up and because the account was deleted: not one request fails, and lanyard token gives the same token', async (t) => {
  const tokens = await openTokens({ client: hub, clusters: [c], name: 'robot', patienceMs: 120_000 })
  t.after(() => tokens.close())
  const user = `system:serviceaccount:${namespace}:robot`
  const over = new AbortController()
  t.after(() => over.abort())
  const failures: unknown[] = []
  let asked = 0
  const asking = (async () => {
    while (!over.signal.aborted) {
      await whoAmI(tokens.clientFor(c))
        .then((seen) => assert.equal(seen, user))
        .catch((error: unknown) => failures.push(error))
      asked++
      await sleep(20) // a program that only asks would take the machine away from the API servers
    }
  })()
  const onHub = async () => decoded(await hub.of(Secret, c).get('robot'))!['token']!
  const renewed = (old: string) =>
    eventually(async () => {
      const now = await onHub()
      assert.notEqual(now, old)
      assert.ok((await tokens.kubeconfigFor(c)).includes(now), 'the library has it')
      return now
    }, patience)

  // It is 55 minutes old, and so it is for an agent that starts now.
  const first = await onHub()
  const at = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString()
  const status = { expirationTimestamp: at(5), tokenSecretRef: { lastRefreshTimestamp: at(-55) } }
  await hub.of(ManagedServiceAccount, c).patch('robot', { merge: { status } }, { subresource: 'status' })
  const pods = there.of(Pod, namespace)
  for (const { metadata } of (await pods.list({ labelSelector: `addon-agent=${addOn}` })).items)
    await pods.delete(metadata.name!)
  const second = await renewed(first)

  await there.of(ServiceAccount, namespace).delete('robot')
  const third = await renewed(second)
  // An API server remembers for ten seconds whom it has let in.
  const dead = clientWith({ token: second, ca: managed.ca })
  await eventually(() => assert.rejects(whoAmI(dead), isUnauthorized), patience)
  dead.close()
  const before = asked
  await eventually(() => asked > before + 1, patience)
  over.abort()
  await asking
  assert.deepEqual(failures, [])

  const env = { HOME: hubPlane.folder }
  const printed = await mustRun('lanyard', ['token', '--cluster', c, '--name', 'robot'], { plane: hubPlane, env })
  const credential = JSON.parse(printed) as { status: { token: string; expirationTimestamp: string } }
  assert.equal(credential.status.token, third)
  assert.equal(Date.parse(credential.status.expirationTimestamp), tokens.get(c)?.expires?.getTime())
})

test('R5.3 with a single agent process the add-on has no Deployment: the agent keeps the accounts itself, with the add-on’s credential, and hands them back', async () => {
  await agent.process.stop()
  agent = await startAgent(managed, c, { args: ['--service-accounts', '--addon-kubeclient-registration-auth=token'] })
  const deployments = there.of(Deployment, namespace)
  await eventually(async () => {
    assert.ok(isTrue(await hub.of(ManagedClusterAddOn, c).get(addOn), 'RunsInAgent'))
    assert.equal(await deployments.find('managed-serviceaccount-addon-agent'), undefined)
  }, patience)
  await create('single', { audiences: ['vault'] })
  await reported('single').then((client) => client.close())
  await hub.of(Secret, c).delete('robot')
  const robot = await eventually(() => hub.of(Secret, c).get('robot'), patience)
  assert.ok(robot.data?.['token'])
  const { entries } = await hubPlane.requestsBy({ user: `system:serviceaccount:${c}:${c}-${addOn}-agent` })
  assert.ok(
    entries.some(({ verb, uri }) => verb === 'create' && uri.includes('/secrets')),
    'by the token of the add-on',
  )

  await agent.process.stop()
  agent = await startAgent(managed, c)
  await eventually(async () => {
    const { status } = await deployments.get('managed-serviceaccount-addon-agent')
    assert.equal(status?.readyReplicas, 1, runner.log(namespace, 'managed-serviceaccount-addon-agent').slice(-3000))
  }, patience)
  await hub.of(Secret, c).delete('robot')
  await eventually(() => hub.of(Secret, c).get('robot'), patience)
})

test('R5.3 R5.21 a cluster that loses the label loses the add-on: accounts, tokens and Secrets go, and the objects say how to get them back', async () => {
  const robot = await reported('robot')
  await label(null)
  await eventually(async () => {
    assert.equal(await hub.of(ManagedClusterAddOn, c).find(addOn), undefined)
    for (const name of ['robot', 'single', addOn])
      assert.equal(await there.of(ServiceAccount, namespace).find(name), undefined, name)
    for (const name of ['robot', 'single']) assert.equal(await hub.of(Secret, c).find(name), undefined)
  }, patience)
  await eventually(() => assert.rejects(whoAmI(robot), isUnauthorized), patience)
  robot.close()
  await eventually(async () => {
    const now = await hub.of(ManagedServiceAccount, c).get('robot')
    assert.match(findCondition(now, 'AllServiceAccountPresent')?.message ?? '', /clusteradm addon enable/)
  }, patience)
})

test('R5.3 the agent of the add-on ends when its credential becomes one of another kind, so that a new start uses it', async () => {
  const file = join(managed.folder, 'hub-of-other.kubeconfig')
  copyFileSync(hubPlane.kubeconfig, file)
  const port = await freePort()
  const flags = ['--cluster-name=other', '--namespace=default', `--hub-kubeconfig=${file}`, `--health-port=${port}`]
  const running = runProgram('lanyard', ['service-accounts-agent', `--kubeconfig=${managed.kubeconfig}`, ...flags], {
    plane: managed,
  })
  await eventually(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok, patience)
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'aws', args: ['eks', 'get-token'] }
  writeFileSync(
    file,
    await kubeconfigText({ cluster: 'hub', server: hubPlane.server, ca: hubPlane.ca, user: { exec } }),
  )
  const { code, stderr } = await running
  assert.equal(code, 1, stderr)
  assert.match(stderr, /hub-of-other\.kubeconfig is another kubeconfig than at the start/)
})
