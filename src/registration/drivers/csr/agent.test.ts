import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, manualClock, startControlPlane, type ControlPlane } from '../../../../testkit/index.ts'
import { installCrds, label, ManagedCluster, subject } from '../../../api/index.ts'
import {
  CertificateSigningRequest,
  ClusterRole,
  ClusterRoleBinding,
  resource,
  type Api,
  type Client,
  type KubeObject,
} from '../../../kube/index.ts'
import { EventRecorder, Manager, silentLogger, systemClock } from '../../../runtime/index.ts'
import { registerGroup } from '../../contract.ts'
import type { HubAddress, ObtainContext, SecretChange, SecretData } from '../driver.ts'
import { csrAgentDriver } from './agent.ts'
import { csrHubDriver } from './hub.ts'

interface SelfSubjectReview extends KubeObject {
  status?: { userInfo: { username: string; groups: string[]; extra: Record<string, string[]> } }
}
const SelfSubjectReview = resource<SelfSubjectReview>({
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectReview',
  plural: 'selfsubjectreviews',
  namespaced: false,
})

let plane: ControlPlane
let admin: Client
let hubAddress: HubAddress
const stop = new AbortController()
let running: Promise<void>
const driver = csrAgentDriver({ expirationSeconds: 600 })

before(async () => {
  plane = await startControlPlane({ audit: false })
  admin = plane.client()
  hubAddress = { source: 'test', server: plane.server, ca: plane.ca, clusterEntry: 'hub' }
  await installCrds(admin, [ManagedCluster.crd({ conversion: 'none' })])
  const verbs = ['create', 'get', 'list', 'watch']
  const csrs = { apiGroups: ['certificates.k8s.io'], resources: ['certificatesigningrequests'], verbs }
  await allow('csr', [csrs], ['system:bootstrappers:managedcluster', subject.managedClusters])
  const hub = csrHubDriver({
    client: admin,
    gates: { managedClusterAutoApproval: false },
    autoApproveUsers: [],
    events: new EventRecorder({ client: admin, controller: 'lanyard.io/csr', instance: 'test' }),
    clock: systemClock,
    log: silentLogger,
  })
  const manager = new Manager({ client: admin })
  hub.start!(manager)
  running = manager.run(stop.signal)
})
after(async () => {
  stop.abort()
  await running
  await plane.stop()
})

const allow = async (name: string, rules: ClusterRole['rules'], groups: string[]): Promise<void> => {
  const apiGroup = 'rbac.authorization.k8s.io'
  await admin.of(ClusterRole).create({ metadata: { name }, rules })
  await admin.of(ClusterRoleBinding).create({
    metadata: { name },
    roleRef: { apiGroup, kind: 'ClusterRole', name },
    subjects: groups.map((group) => ({ kind: 'Group', name: group, apiGroup })),
  })
}
const bootstrapUser = { user: 'system:bootstrap:abcdef', groups: ['system:bootstrappers:managedcluster'] }

/** What an agent holds: its secret, and what it said. */
const agentOf = (cluster: string) => {
  const identity = { cluster, agent: 'a1' }
  const said: string[] = []
  const agent = {
    identity,
    said,
    secret: {} as SecretData,
    bootstrap: plane.client(bootstrapUser),
    write: (change: SecretChange): void => {
      const merged = { ...agent.secret, ...change }
      agent.secret = Object.fromEntries(Object.entries(merged).filter((e): e is [string, string] => e[1] !== undefined))
    },
    context: (more: Partial<ObtainContext> = {}): ObtainContext => ({
      identity,
      hub: agent.bootstrap,
      present: agent.secret,
      save: async (change) => agent.write(change),
      report: (state) =>
        said.push('waitingFor' in state ? state.waitingFor : `${state.condition.reason} ${state.condition.message}`),
      clock: systemClock,
      random: Math.random,
      log: silentLogger,
      signal: AbortSignal.timeout(60_000),
      ...more,
    }),
    csrs: async () => {
      const labelSelector = `${label.clusterName}=${cluster}`
      return (await admin.of(CertificateSigningRequest).list({ labelSelector })).items
    },
    unusable: () => driver.unusable(agent.secret, { identity, now: Date.now() }),
  }
  return agent
}

const verdict = async (name: string, type: 'Approved' | 'Denied' | 'Failed'): Promise<void> => {
  const csr = await admin.of(CertificateSigningRequest).get(name)
  const conditions = [{ type, status: 'True' as const, reason: 'Test', message: `said ${type}` }]
  await admin
    .of(CertificateSigningRequest)
    .update({ ...csr, status: { conditions } }, { subresource: type === 'Failed' ? 'status' : 'approval' })
}
const openCsr = (agent: ReturnType<typeof agentOf>): Promise<CertificateSigningRequest> =>
  eventually(async () => (await agent.csrs()).find(({ status }) => !status?.conditions) ?? false)
const approve = async (agent: ReturnType<typeof agentOf>): Promise<void> =>
  verdict((await openCsr(agent)).metadata.name!, 'Approved')
const join = async (agent: ReturnType<typeof agentOf>): Promise<void> => {
  const [change] = await Promise.all([driver.obtain(agent.context()), approve(agent)])
  agent.write(change)
}
const whoami = async (client: Api): Promise<{ username: string; groups: string[]; id: string }> => {
  const { status } = await client.of(SelfSubjectReview).create({ metadata: {} })
  const { username, groups, extra } = status!.userInfo
  return { username, groups, id: extra['authentication.kubernetes.io/credential-id']?.[0] ?? '' }
}

test('R1.7 an agent gets a certificate when a person approves, says whom it waits for, and the hub knows it by name', async () => {
  const agent = agentOf('c1')
  assert.equal(agent.unusable()?.reason, 'CertificateMissing')
  await join(agent)
  assert.equal(agent.unusable(), undefined)
  assert.deepEqual(Object.keys(agent.secret).toSorted(), ['tls.crt', 'tls.key'])
  const [csr, ...others] = await agent.csrs()
  assert.equal(others.length, 0)
  assert.match(csr!.metadata.name!, /^c1-[0-9a-f]{20}$/)
  assert.equal(csr!.spec.expirationSeconds, 600)
  assert.match(agent.said[0]!, /^hub cluster-admin approval: run clusteradm accept --clusters c1 on the hub \(CSR c1-/)
  assert.match(agent.said.at(-1)!, /^ClientCertificateUpdated client certificate rotated starting from .* to /)
  const me = await whoami(driver.asCluster(() => agent.secret, hubAddress, {}))
  assert.equal(me.username, 'system:open-cluster-management:c1:a1')
  assert.ok(me.groups.includes('system:open-cluster-management:c1'))
  // Nothing of the key was sent.
  assert.ok(!JSON.stringify(csr).includes(agent.secret['tls.key']!.split('\n')[1]!))
})

test('R1.7 an accepted cluster renews again and again without a person, with a new key each time, on the same connection object', async () => {
  const agent = agentOf('c2')
  await join(agent)
  await admin.of(ManagedCluster).create({ metadata: { name: 'c2' }, spec: { hubAcceptsClient: true } })
  const renew = { apiGroups: [registerGroup], resources: ['managedclusters/clientcertificates'], verbs: ['renew'] }
  await allow('renew-c2', [renew], [subject.clusterGroup('c2')])
  const hub = driver.asCluster(() => agent.secret, hubAddress, {})
  const ids = new Set([(await whoami(hub)).id])
  for (let round = 1; round <= 3; round++) {
    const { 'tls.key': oldKey } = agent.secret
    const lifetime = driver.expiresAt(agent.secret)! - Date.now()
    assert.ok(lifetime > 0 && lifetime <= 600_000)
    assert.ok(driver.renewAt(agent.secret, Math.random) < driver.expiresAt(agent.secret)!)
    const change = await driver.obtain(agent.context({ hub }))
    assert.equal(agent.unusable(), undefined, 'the old one is good until the new one takes its place')
    agent.write(change)
    assert.notEqual(agent.secret['tls.key'], oldKey)
    assert.equal(agent.unusable(), undefined)
    ids.add((await whoami(hub)).id)
    assert.equal(ids.size, round + 1, 'the new certificate is used at once')
  }
  assert.ok(agent.said.some((text) => /the hub to approve the renewal/.test(text)))
  const renewals = (await agent.csrs()).filter(({ spec }) => spec.username !== bootstrapUser.user)
  assert.deepEqual(
    renewals.map(({ status }) => status?.conditions?.[0]?.reason),
    Array(3).fill('AutoApprovedByHubCSRApprovingController'),
  )
})

/** The hub, and saving, with the process ending right before or right after operation number `at`. */
const dying = (context: ObtainContext, at: number, when: 'before' | 'after') => {
  const death = new AbortController()
  let count = 0
  const step = async <T>(run: () => Promise<T>): Promise<T> => {
    const dies = ++count === at
    if (dies && when === 'before') death.abort()
    death.signal.throwIfAborted()
    const result = await run()
    if (dies) death.abort()
    death.signal.throwIfAborted()
    return result
  }
  const hub: Api = {
    ...context.hub,
    connection: context.hub.connection,
    close: () => {},
    of: (kind, namespace) =>
      new Proxy(context.hub.of(kind, namespace), {
        get: (target, name) => {
          const method: unknown = Reflect.get(target, name, target)
          if (typeof method !== 'function') return method
          return (...args: unknown[]) => step(() => method.apply(target, args) as Promise<unknown>)
        },
      }),
  }
  return {
    context: {
      ...context,
      hub,
      save: (change: SecretChange) => step(() => context.save(change)),
      signal: death.signal,
    },
    steps: () => count,
  }
}

test('an agent that dies at any moment goes on with the same CSR: there is never a second one', async () => {
  for (const when of ['before', 'after'] as const) {
    for (let at = 1; ; at++) {
      const agent = agentOf(`crash-${when}-${at}`)
      const first = dying(agent.context(), at, when)
      const approved = approve(agent)
      const outcome = await driver.obtain(first.context).then(
        () => 'finished',
        () => 'died',
      )
      if (outcome === 'died') {
        const change = await driver.obtain(agent.context())
        agent.write(change)
        assert.equal(agent.unusable(), undefined)
      }
      await approved
      assert.equal((await agent.csrs()).length, 1, `${when} step ${at}`)
      if (outcome === 'finished') {
        assert.ok(at > 4, `only ${at} steps were tried`)
        break
      }
    }
  }
})

test('what was issued while the agent was away is picked up, not asked for again', async () => {
  const agent = agentOf('away')
  const death = new AbortController()
  const first = driver.obtain(agent.context({ signal: death.signal }))
  const { metadata } = await openCsr(agent)
  death.abort()
  await assert.rejects(first)
  await verdict(metadata.name!, 'Approved')
  await eventually(async () => (await agent.csrs())[0]?.status?.certificate !== undefined)
  agent.write(await driver.obtain(agent.context()))
  assert.equal(agent.unusable(), undefined)
  assert.equal((await agent.csrs()).length, 1)
})

const moving = (clock: ReturnType<typeof manualClock>): (() => void) => {
  const timer = setInterval(() => clock.advance(1000), 5)
  return () => clearInterval(timer)
}

test('a denied agent says why and what to do, waits although it is started again, and then asks with a new key', async () => {
  const agent = agentOf('denied')
  const clock = manualClock(Date.now())
  const asked = (): Promise<SecretChange> => driver.obtain(agent.context({ clock }))
  const death = new AbortController()
  const first = driver.obtain(agent.context({ clock, signal: death.signal }))
  const { name } = (await openCsr(agent)).metadata
  await verdict(name!, 'Denied')
  await eventually(() => agent.said.some((text) => text.startsWith('ClientCertificateUpdateFailed')))
  const told = agent.said.find((text) => text.startsWith('ClientCertificateUpdateFailed'))!
  assert.match(told, /was denied: Test: said Denied; the next request is made at .*; .*kubectl delete csr denied-/)
  death.abort()
  await assert.rejects(first)

  agent.said.length = 0
  const second = asked()
  await eventually(() => agent.said.length > 0)
  for (let seconds = 0; seconds < 100; seconds += 5) {
    clock.advance(5000)
    assert.equal((await agent.csrs()).length, 1, 'no new one within the two minutes')
  }
  const still = moving(clock)
  const next = await openCsr(agent)
  still()
  assert.notEqual(next.metadata.name, name)
  await verdict(next.metadata.name!, 'Approved')
  agent.write(await second)
  assert.equal(driver.unusable(agent.secret, { identity: agent.identity, now: Date.now() }), undefined)
})

test('deleting a denied CSR lets the agent ask again at once, and a CSR that vanishes is made again', async () => {
  const agent = agentOf('deleted')
  const obtained = driver.obtain(agent.context())
  const first = await openCsr(agent)
  await admin.of(CertificateSigningRequest).delete(first.metadata.name!)
  const again = await openCsr(agent)
  assert.equal(again.metadata.name, first.metadata.name, 'the same key asks again')
  assert.notEqual(again.metadata.uid, first.metadata.uid)
  await verdict(again.metadata.name!, 'Denied')
  await eventually(() => agent.said.some((text) => text.includes('was denied')))
  await admin.of(CertificateSigningRequest).delete(again.metadata.name!)
  const last = await openCsr(agent)
  assert.notEqual(last.metadata.name, again.metadata.name)
  await verdict(last.metadata.name!, 'Approved')
  agent.write(await obtained)
  assert.equal(agent.unusable(), undefined)
})

test('a CSR of the agent’s name that is for another key is not waited for', async () => {
  const agent = agentOf('squatted')
  const death = new AbortController()
  const first = driver.obtain(agent.context({ signal: death.signal }))
  const { metadata } = await openCsr(agent)
  death.abort()
  await assert.rejects(first)
  await admin.of(CertificateSigningRequest).delete(metadata.name!)
  const other = agentOf('squatter')
  const theirs = driver.obtain(other.context({ signal: AbortSignal.timeout(20_000) })).catch(() => undefined)
  const { spec } = await openCsr(other)
  const labels = { [label.clusterName]: 'squatted' }
  const { request, signerName, usages } = spec
  await admin
    .of(CertificateSigningRequest)
    .create({ metadata: { name: metadata.name, labels }, spec: { request, signerName, usages } })
  const obtained = driver.obtain(agent.context())
  const mine = await eventually(
    async () => (await agent.csrs()).find((csr) => csr.metadata.name !== metadata.name) ?? false,
  )
  await verdict(mine.metadata.name!, 'Approved')
  agent.write(await obtained)
  assert.equal(agent.unusable(), undefined)
  await approve(other)
  await theirs
})

test('a signer that cannot sign is reported with what to use instead', async () => {
  const agent = agentOf('unsigned')
  const death = new AbortController()
  const obtained = driver.obtain(agent.context({ signal: death.signal }))
  const { name } = (await openCsr(agent)).metadata
  await verdict(name!, 'Failed')
  const told = await eventually(
    () => agent.said.find((text) => text.startsWith('ClientCertificateUpdateFailed')) ?? false,
  )
  assert.match(told, /could not sign CSR unsigned-.*aws-irsa/)
  death.abort()
  await assert.rejects(obtained)
})

test('with ten CSRs on the hub no more are made, until there is room', async () => {
  const agent = agentOf('many')
  const clock = manualClock(Date.now())
  const labels = { [label.clusterName]: 'many' }
  const [sample] = await agentOf('c1').csrs()
  const { request, signerName, usages } = sample!.spec
  for (let i = 0; i < 10; i++)
    await admin
      .of(CertificateSigningRequest)
      .create({ metadata: { name: `many-${i}`, labels }, spec: { request, signerName, usages } })
  const obtained = driver.obtain(agent.context({ clock }))
  const told = await eventually(
    () => agent.said.find((text) => text.startsWith('ClientCertificateUpdateFailed')) ?? false,
  )
  assert.match(told, /no more certificate requests are made: the hub has 10 .*kubectl delete csr -l/)
  for (let i = 0; i < 10; i++) await admin.of(CertificateSigningRequest).delete(`many-${i}`)
  const still = moving(clock)
  await approve(agent)
  agent.write(await obtained)
  still()
  assert.equal((await agent.csrs()).length, 1)
})

test('a hub that lets nobody create CSRs is reported with the right that is missing', async () => {
  const agent = agentOf('forbidden')
  agent.bootstrap = plane.client({ user: 'nobody', groups: [] })
  await assert.rejects(
    driver.obtain(agent.context()),
    /does not let us ask for a certificate of system:open-cluster-management:forbidden:a1: .*needs create, get, list and watch/,
  )
  assert.match(agent.said.at(-1)!, /^ClientCertificateUpdateFailed/)
})

test('an add-on’s certificate carries its subject and names, under a CSR of its own', async () => {
  const agent = agentOf('with-addon')
  const addOn = driver.forAddOn({
    addOn: 'search',
    user: 'system:open-cluster-management:cluster:with-addon:addon:search:agent:search',
    groups: ['system:open-cluster-management:cluster:with-addon:addon:search'],
    signerName: 'kubernetes.io/kube-apiserver-client',
    dnsNames: ['search.addon.open-cluster-management.io'],
  })
  const [change] = await Promise.all([addOn.obtain(agent.context()), approve(agent)])
  agent.write(change)
  const [csr] = await agent.csrs()
  assert.match(csr!.metadata.name!, /^addon-with-addon-search-[0-9a-f]{20}$/)
  assert.equal(csr!.metadata.labels?.[label.addOnName], 'search')
  assert.equal(addOn.unusable(agent.secret, { identity: agent.identity, now: Date.now() }), undefined)
  assert.equal(agent.unusable()?.reason, 'SubjectMismatch')
})

test('the wait for approval outlives a restart of the hub’s API server', async () => {
  const agent = agentOf('restarted')
  const obtained = driver.obtain(agent.context({ signal: AbortSignal.timeout(90_000) }))
  await openCsr(agent)
  await plane.apiServer.kill()
  await plane.apiServer.restart()
  await approve(agent)
  agent.write(await obtained)
  assert.equal(agent.unusable(), undefined)
  assert.equal((await agent.csrs()).length, 1)
})
