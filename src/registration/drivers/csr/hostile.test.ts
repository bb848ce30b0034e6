import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { group, hostile, ofC1, request, user, type Hostile, type Who } from '../../../../testkit/hostile-requests.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../../../testkit/index.ts'
import { installCrds, label, ManagedCluster, signer, subject } from '../../../api/index.ts'
import {
  ApiError,
  CertificateSigningRequest,
  ClusterRole,
  ClusterRoleBinding,
  Event,
  Namespace,
  requesterOf,
  type Client,
} from '../../../kube/index.ts'
import { EventRecorder, Manager, silentLogger, systemClock } from '../../../runtime/index.ts'
import { registerGroup } from '../../contract.ts'
import { stateOf } from './checks.ts'
import { decide } from './decision.ts'
import { csrHubDriver } from './hub.ts'

let plane: ControlPlane
let admin: Client
const stop = new AbortController()
let running: Promise<void>
before(async () => {
  plane = await startControlPlane({ audit: false })
  admin = plane.client()
  await installCrds(admin, [ManagedCluster.crd({ conversion: 'none' })])
  const csrs = {
    apiGroups: ['certificates.k8s.io'],
    resources: ['certificatesigningrequests'],
    verbs: ['create', 'get'],
  }
  await allow('csr', [csrs], 'system:authenticated')
  const renew = { apiGroups: [registerGroup], resources: ['managedclusters/clientcertificates'], verbs: ['renew'] }
  for (const name of ['c1', 'c2', 'c10', 'denied', 'held', 'old']) {
    const metadata = name === 'held' ? { name, annotations: { 'registration.lanyard.io/agent': 'a1' } } : { name }
    await admin.of(Namespace).create({ metadata })
    await allow(`renew-${name}`, [renew], group(name))
  }
  for (const name of ['c1', 'c2', 'c3', 'c10', 'denied', 'held', 'old']) {
    const created = await admin
      .of(ManagedCluster)
      .create({ metadata: { name }, spec: { hubAcceptsClient: name !== 'denied' } })
    const said = (type: string) => ({
      type,
      status: 'True' as const,
      reason: 'X',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    })
    const conditions = [said('ManagedClusterJoined'), said('ManagedClusterConditionAvailable')]
    if (name === 'held' || name === 'old')
      await admin.of(ManagedCluster).updateStatus({ ...created, status: { conditions } })
  }
  const events = new EventRecorder({ client: admin, controller: 'lanyard.io/csr', instance: 'test' })
  const driver = csrHubDriver({
    client: admin,
    gates: { managedClusterAutoApproval: true },
    autoApproveUsers: ['listed'],
    events,
    clock: systemClock,
    log: silentLogger,
  })
  const manager = new Manager({ client: admin })
  driver.start!(manager)
  running = manager.run(stop.signal)
})
after(async () => {
  stop.abort()
  await running
  await plane.stop()
})

const allow = async (name: string, rules: ClusterRole['rules'], toGroup: string): Promise<void> => {
  const apiGroup = 'rbac.authorization.k8s.io'
  await admin.of(ClusterRole).create({ metadata: { name }, rules })
  await admin.of(ClusterRoleBinding).create({
    metadata: { name },
    roleRef: { apiGroup, kind: 'ClusterRole', name },
    subjects: [{ kind: 'Group', name: toGroup, apiGroup }],
  })
}

const identityOf = (who: Who): { user: string; groups: string[] } => {
  if (who === 'eks-c2') return { user: 'c2', groups: [subject.accessEntryGroup('c2')] }
  if (who === 'stranger:a1') return { user: user('c3:a1'), groups: ['strangers'] }
  const [cluster = '', agent] = who.split(':')
  if (!agent) return { user: who, groups: ['system:bootstrappers:managedcluster'] }
  return { user: subject.agentUser(cluster, agent), groups: [group(cluster), subject.managedClusters] }
}

test('R1.16 every one of these hostile certificate requests is refused for its reason, and none is approved', async (t) => {
  assert.ok(hostile.length >= 40)
  const clients = new Map<Who, Client>()
  const clientOf = (who: Who): Client => {
    if (!clients.has(who)) clients.set(who, plane.client(identityOf(who)))
    return clients.get(who)!
  }
  const objectOf = (one: Hostile, index: number): CertificateSigningRequest => ({
    metadata: { name: `hostile-${index}`, labels: one.labels ?? { [label.clusterName]: 'c1' } },
    spec: {
      request: Buffer.from(one.pem).toString('base64'),
      signerName: one.signerName ?? signer.kubeApiServerClient,
      usages: one.usages ?? ['digital signature', 'key encipherment', 'client auth'],
      ...one.forged,
    },
  })
  const rows: { index: number; one: Hostile; refusedByServer: string | undefined }[] = []
  for (const [index, one] of hostile.entries()) {
    const refusedByServer = await clientOf(one.by)
      .of(CertificateSigningRequest)
      .create(objectOf(one, index))
      .then(
        () => undefined,
        (error: unknown) => {
          assert.ok(error instanceof ApiError && [400, 403, 422].includes(error.status), String(error))
          return error.reason
        },
      )
    rows.push({ index, one, refusedByServer })
  }

  // The same policy on what was stored or, where the API server would not have it, on what it would have stored.
  const clusters = new Map((await admin.of(ManagedCluster).list()).items.map((c) => [c.metadata.name!, c]))
  for (const { index, one, refusedByServer } of rows) {
    const { user: username, groups } = identityOf(one.by)
    const made = objectOf(one, index)
    const csr = refusedByServer
      ? { ...made, spec: { ...made.spec, username, groups } }
      : { ...(await admin.of(CertificateSigningRequest).get(`hostile-${index}`)), status: {} }
    assert.equal(csr.spec.username, username, one.title)
    const state = stateOf(csr, {
      signerName: signer.kubeApiServerClient,
      requester: requesterOf(csr),
      managedCluster: (name) => clusters.get(name),
    })
    const outcome = await decide(
      state,
      { autoApproval: true, users: new Set(['listed']) },
      {
        mayRenew: async () => one.by !== 'stranger:a1',
        holder: async () => (one.labels?.[label.clusterName] === 'held' ? 'a1' : undefined),
      },
    )
    assert.notEqual(outcome.kind, 'approved', one.title)
    assert.equal(outcome.reason, one.reason, one.title)
    const by = refusedByServer ? `API server (${refusedByServer}), and we would` : 'hub'
    t.diagnostic(`${one.title} | by ${one.by} | ${by} | ${outcome.kind} ${outcome.reason}`)
    if (refusedByServer || outcome.kind !== 'refused') continue
    // The real controller came to the same end.
    if (outcome.final)
      await eventually(async () => {
        const { status } = await admin.of(CertificateSigningRequest).get(`hostile-${index}`)
        const found = status?.conditions?.map(({ type, reason }) => `${type} ${reason}`)
        assert.deepEqual(found, [`Denied ${one.reason}`], one.title)
      })
    else
      await eventually(async () => {
        const { items } = await admin.of(Event, 'default').list()
        const told = items.filter(({ regarding, type }) => type === 'Warning' && regarding.name === `hostile-${index}`)
        assert.deepEqual(
          told.map(({ reason }) => reason),
          [one.reason],
          one.title,
        )
      })
  }

  // An honest renewal and an honest first request, made last, are approved; when they are, all others have been looked at.
  const honest = [
    { by: 'c1:a1' as const, commonName: ofC1.commonName, cluster: 'c1' },
    { by: 'listed' as const, commonName: user('c2:a1'), cluster: 'c2' },
  ]
  for (const { by, commonName, cluster } of honest) {
    const made = objectOf(
      {
        title: '',
        by,
        reason: '',
        pem: request({ commonName, organizations: [group(cluster)] }),
        labels: { [label.clusterName]: cluster },
      },
      0,
    )
    await clientOf(by)
      .of(CertificateSigningRequest)
      .create({ ...made, metadata: { ...made.metadata, name: `honest-${cluster}` } })
  }
  await eventually(async () => {
    for (const name of ['honest-c1', 'honest-c2'])
      assert.ok((await admin.of(CertificateSigningRequest).get(name)).status?.certificate, name)
  })
  const { items } = await admin.of(CertificateSigningRequest).list()
  const approved = items.filter(
    ({ status }) => status?.certificate || status?.conditions?.some((c) => c.type === 'Approved'),
  )
  assert.deepEqual(approved.map(({ metadata }) => metadata.name!).toSorted(), ['honest-c1', 'honest-c2'])
  t.diagnostic(
    `${hostile.length} hostile requests, ${rows.filter((r) => !r.refusedByServer).length} of them stored by the API server`,
  )
})
