/** The rules on snapshots made by hand: what cannot be planted on this machine, and what must not be called stuck. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFileSync } from 'node:fs'
import { allKinds, type ManagedCluster, type ManifestWork } from '../../api/index.ts'
import type { CertificateSigningRequest, Lease, RoleBinding } from '../../kube/index.ts'
import { createAuthority, issue } from '../../runtime/pki/index.ts'
import { shellWord } from './advice.ts'
import { faults, type Fault, type Seen, type StepResult } from './faults.ts'
import { walkCluster, walkHub } from './index.ts'
import { reportText } from './report.ts'
import type { HubView, ManagedView, RunningDeployment, Snapshot } from './snapshot.ts'

const now = Date.parse('2026-05-01T12:00:00Z')
const at = (seconds: number): string => new Date(now + seconds * 1000).toISOString()
const is = <T>(value: T): Seen<T> => ({ is: value })

const deployment = (namespace: string, name: string, available = 1): RunningDeployment => ({
  metadata: { namespace, name, generation: 1 },
  spec: {
    replicas: 1,
    template: { spec: { containers: [] } },
    selector: { matchLabels: { app: `pods-of-${name}` } },
  },
  status: { observedGeneration: 1, updatedReplicas: available, availableReplicas: available },
})

const condition = (type: string, status: 'True' | 'False' | 'Unknown', message = '', reason = 'Because') => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: at(-100),
})

const cluster = (
  change: Partial<ManagedCluster['spec']> = {},
  ...more: ReturnType<typeof condition>[]
): ManagedCluster => ({
  metadata: { name: 'c1', annotations: { 'agent.open-cluster-management.io/cluster-id': 'id-1' } },
  spec: { hubAcceptsClient: true, leaseDurationSeconds: 60, ...change },
  status: {
    conditions: [condition('HubAcceptedManagedCluster', 'True'), condition('ManagedClusterJoined', 'True'), ...more],
  },
})

const lease = (namespace: string, name: string, age: number, duration = 60): Lease => ({
  metadata: { namespace, name },
  spec: { holderIdentity: 'one', leaseDurationSeconds: duration, renewTime: at(-age) },
})

const prefix = 'open-cluster-management:managedcluster'
const binding = (name: string, namespace?: string): RoleBinding => ({
  metadata: { name, namespace },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
  subjects: [{ kind: 'Group', name: 'system:open-cluster-management:c1' }],
})

/** A hub with which all is well. */
const hub = (change: Partial<HubView> = {}): HubView => ({
  server: 'https://hub:6443',
  namespace: 'open-cluster-management-hub',
  caHash: 'sha256:00',
  silence: undefined,
  kinds: is(new Set(allKinds.map(({ plural, group }) => `${plural}.${group}`))),
  managers: is([{ metadata: { name: 'cluster-manager' } }]),
  deployments: is([
    deployment('open-cluster-management', 'cluster-manager'),
    deployment('open-cluster-management-hub', 'cluster-manager-hub'),
  ]),
  leader: is(lease('open-cluster-management-hub', 'lanyard-hub', 5, 15)),
  admission: is(undefined),
  clusters: is([cluster()]),
  namespaces: is([{ metadata: { name: 'c1' } }]),
  holders: new Map(),
  clusterRoles: is(new Set([`${prefix}:c1`, `${prefix}:registration`, `${prefix}:work`])),
  clusterRoleBindings: is([binding(`${prefix}:c1`)]),
  roleBindings: is([binding(`${prefix}:c1:registration`, 'c1'), binding(`${prefix}:c1:work`, 'c1')]),
  requests: is([]),
  leases: is([lease('c1', 'managed-cluster-lease', 20)]),
  works: is([]),
  addOns: { addOns: is([]), catalogue: is([]), requests: is([]), accounts: is([]) },
  ...change,
})

const authority = createAuthority({ commonName: 'test', validForMs: 1e12, now: new Date(now - 1e11) })
/** A credential whose certificate began and ends so many seconds from now. */
const credential = (from: number, until: number): Record<string, string> => ({
  kubeconfig: 'something',
  'cluster-name': 'c1',
  'agent-name': 'a1',
  'tls.crt': issue(authority, {
    commonName: 'c1',
    usages: ['client'],
    notBefore: new Date(now + from * 1000),
    notAfter: new Date(now + until * 1000),
  }).cert,
})

/** A managed cluster with which all is well. */
const managed = (change: Partial<ManagedView> = {}): ManagedView => ({
  server: 'https://managed:6443',
  silence: undefined,
  isHub: false,
  ids: is(['id-1']),
  kinds: is(new Set(allKinds.map(({ plural, group }) => `${plural}.${group}`))),
  klusterlet: is({ metadata: { name: 'klusterlet' }, spec: { clusterName: 'c1' } }),
  deployments: is([
    deployment('open-cluster-management', 'klusterlet'),
    deployment('open-cluster-management-agent', 'klusterlet-agent'),
  ]),
  namespace: 'open-cluster-management-agent',
  bootstrap: is({ kubeconfig: 'something' }),
  credential: is(credential(-1000, 100_000)),
  way: is({ kind: 'open', server: 'https://hub:6443', cluster: cluster() }),
  ownWay: is({ kind: 'open', server: 'https://hub:6443', cluster: cluster() }),
  namespaces: is(new Set(['default'])),
  addOnCredentials: is([]),
  ...change,
})

const snapshot = (change: Partial<Snapshot> = {}): Snapshot => ({
  now,
  name: 'c1',
  program: 'clusteradm',
  words: { hub: ['--context', 'hub'], managed: ['--kubeconfig', '/home/ann/my c1'] },
  hub: hub(),
  managed: managed(),
  ...change,
})

const all = (s: Snapshot): StepResult[] => [...walkHub(s), ...walkCluster(s)]
const found = (s: Snapshot): Fault[] => all(s).flatMap((step) => (step.state === 'stuck' ? [step.fault] : []))
const commandOf = (s: Snapshot, fault: Fault): string =>
  all(s).flatMap((step) => (step.state === 'stuck' && step.fault === fault ? [step.command] : []))[0] ?? assert.fail()

test('R1.64 nothing is stuck where all is well, and everything was looked at', () => {
  assert.deepEqual([...new Set(all(snapshot()).map(({ state }) => state))], ['ok'])
})

test('R1.64 clock-skew: what the hub says of the clocks is told', () => {
  const skewed = cluster({}, condition('ManagedClusterConditionClockSynced', 'False', 'The clock is off.'))
  assert.deepEqual(found(snapshot({ hub: hub({ clusters: is([skewed]) }) })), ['clock-skew'])
})

test('R1.64 certificate-expiring: from when the agent should have renewed, and not before', () => {
  const of = (from: number, until: number): Fault[] =>
    found(snapshot({ managed: managed({ credential: is(credential(from, until)) }) }))
  assert.deepEqual(of(-84, 16), [])
  assert.deepEqual(of(-86, 14), ['certificate-expiring'])
})

test('R1.64 certificate-expiring is also found without a look into the secret, from what the agent said', () => {
  const failed = cluster({}, condition('ClusterCertificateRotated', 'False', 'the hub did not approve it'))
  assert.deepEqual(found(snapshot({ managed: undefined, hub: hub({ clusters: is([failed]) }) })), [
    'certificate-expiring',
  ])
})

test('R1.64 csr-failed: a request that was approved and is not signed, after the time that signing takes', () => {
  const csr = (age: number): CertificateSigningRequest => ({
    metadata: { name: 'csr-1', labels: { 'open-cluster-management.io/cluster-name': 'c1' } },
    spec: { request: '', signerName: 's' },
    status: { conditions: [{ type: 'Approved', status: 'True', lastUpdateTime: at(-age) }] },
  })
  const of = (age: number): Fault[] =>
    found(
      snapshot({
        hub: hub({ requests: is([csr(age)]), clusters: is([{ ...cluster(), status: {} }]) }),
        managed: managed({ credential: is({ 'cluster-name': 'c1' }) }),
      }),
    )
  assert.deepEqual(of(10), [])
  assert.deepEqual(of(40), ['csr-failed'])
})

test('R1.64 hub-secret-missing: of an agent that the hub does not know yet, the request is named', () => {
  const csr: CertificateSigningRequest = {
    metadata: { name: 'csr-of-a2', labels: { 'open-cluster-management.io/cluster-name': 'c1' } },
    spec: { request: '', signerName: 's' },
  }
  const namespaces = is([{ metadata: { name: 'c1', annotations: { 'registration.lanyard.io/agent': 'a1' } } }])
  const lost = { 'cluster-name': 'c1', 'agent-name': 'a2', 'pending.csr': 'csr-of-a2' }
  const s = snapshot({ hub: hub({ requests: is([csr]), namespaces }), managed: managed({ credential: is(lost) }) })
  const accept = 'clusteradm accept --clusters c1 --csr csr-of-a2 --context hub'
  assert.deepEqual(found(s), ['csr-pending', 'hub-secret-missing'])
  assert.equal(commandOf(s, 'csr-pending'), accept)
  assert.equal(commandOf(s, 'hub-secret-missing'), accept)
})

test('R1.64 hub-not-running: a leader that no longer renews its lease, whatever its Deployment says', () => {
  const stale = is(lease('open-cluster-management-hub', 'lanyard-hub', 60, 15))
  const s = snapshot({ hub: hub({ leader: stale }) })
  assert.deepEqual(found(s), ['hub-not-running'])
  assert.equal(
    commandOf(s, 'hub-not-running'),
    'kubectl --context hub -n open-cluster-management-hub delete pod -l app=pods-of-cluster-manager-hub --grace-period=10',
  )
})

test('R1.64 credential-refused: an agent whose certificate the hub does not know any more asks for another', () => {
  const refused = managed({ ownWay: is({ kind: 'refused', server: 'https://hub:6443' }) })
  const silent = hub({ leases: is([lease('c1', 'managed-cluster-lease', 1000)]) })
  assert.deepEqual(found(snapshot({ managed: refused, hub: silent })), ['credential-refused', 'lease-stale'])
})

test('R1.64 namespace-missing: the hub that should have made it is started anew', () => {
  assert.deepEqual(found(snapshot({ hub: hub({ namespaces: is([]) }) })), ['namespace-missing'])
})

test('R1.64 not-accepted waits for the namespace of an earlier cluster of that name to be gone', () => {
  const asks = { ...cluster({ hubAcceptsClient: false }), status: {} }
  const of = (deletionTimestamp?: string): Fault[] => {
    const namespaces = is([{ metadata: { name: 'c1', deletionTimestamp } }])
    return found(snapshot({ hub: hub({ clusters: is([asks]), namespaces }) }))
  }
  assert.deepEqual(of(at(-1)), [])
  assert.deepEqual(of(), ['not-accepted'])
})

test('R1.64 acceptance-failed: why the hub could not let a cluster in', () => {
  const failed = cluster()
  failed.status = { conditions: [condition('HubAcceptedManagedCluster', 'False', 'no room', 'Error')] }
  const s = snapshot({ hub: hub({ clusters: is([failed]), leases: is([]) }) })
  assert.deepEqual(found(s), ['acceptance-failed'])
})

test('R1.64 managed-unreachable: nothing else is claimed of a cluster that does not answer', () => {
  const unseen = { unseen: 'it does not answer' }
  const dark = { ids: unseen, kinds: unseen, klusterlet: unseen, deployments: unseen, bootstrap: unseen }
  const more = { credential: unseen, way: unseen, ownWay: unseen, namespaces: unseen }
  const silence = { fault: 'managed-unreachable' as const, why: 'it does not answer' }
  assert.deepEqual(found(snapshot({ managed: managed({ silence, ...dark, ...more }) })), ['managed-unreachable'])
})

test('R1.64 cluster-name-taken by a cluster that was let in: this one has to leave, the other is not touched', () => {
  const s = snapshot({ managed: managed({ ids: is(['id-2']) }) })
  assert.deepEqual(found(s), ['cluster-name-taken'])
  assert.equal(commandOf(s, 'cluster-name-taken'), "clusteradm unjoin --cluster-name c1 --kubeconfig '/home/ann/my c1'")
})

test('R1.64 a hub that cannot be reached from here is no fault while the agent reaches it', () => {
  const away = is({ kind: 'unreachable', server: 'https://inside:6443', why: 'no route' } as const)
  assert.deepEqual(found(snapshot({ managed: managed({ way: away, ownWay: away }) })), [])
  const alone = snapshot({ managed: managed({ way: away, ownWay: away }), hub: undefined })
  assert.deepEqual(found(alone), ['hub-unreachable'])
})

test('R1.64 what one may not look at is said, and is neither good nor bad', () => {
  const s = snapshot({ hub: hub({ works: { unseen: 'you may not' }, admission: { unseen: 'you may not' } }) })
  assert.deepEqual(found(s), [])
  const blind = all(s).filter(({ state }) => state === 'unknown')
  assert.deepEqual(
    blind.map(({ step }) => step),
    ['the webhooks of the hub', 'the works'],
  )
})

test('R1.64 work-failing: a work that fails for another reason than its namespace is for a person to mend', () => {
  const work: ManifestWork = {
    metadata: { name: 'w', namespace: 'c1' },
    spec: { workload: { manifests: [] } },
    status: { conditions: [condition('Applied', 'False', 'invalid')] },
  }
  const s = snapshot({ hub: hub({ works: is([work]) }) })
  assert.equal(commandOf(s, 'work-failing'), 'kubectl --context hub -n c1 edit manifestwork w')
})

test('R1.64 without the kubeconfig of the hub, what only its people can do is told for the hub', () => {
  const s = snapshot({
    hub: undefined,
    words: { hub: [], managed: [] },
    managed: managed({ credential: is(undefined), bootstrap: is(undefined), way: { unseen: 'none' } }),
  })
  assert.equal(commandOf(s, 'no-bootstrap-secret'), 'clusteradm get token')
})

test('R1.64 words are quoted for the shell', () => {
  assert.deepEqual(['c1', 'a b', "it's", '$HOME', ''].map(shellWord), [
    'c1',
    "'a b'",
    String.raw`'it'\''s'`,
    "'$HOME'",
    "''",
  ])
})

test('R1.64 people see every step of a cluster, and what to do first', () => {
  const s = snapshot({ hub: hub({ clusters: is([cluster({ hubAcceptsClient: false })]) }), managed: undefined })
  const steps = walkCluster(s)
  const report = {
    hub: { server: 'https://hub:6443', steps: walkHub(s) },
    managed: undefined,
    clusters: [{ name: 'c1', state: 'stuck' as const, steps }],
  }
  const text = reportText(report, { paint: (_, plain) => plain })
  assert.match(text, /^Hub https:\/\/hub:6443\n {2}ok {5}the hub answers\n/)
  assert.match(text, /\n {2}stuck {2}the hub lets the cluster in: denied-after-accept\n/)
  assert.match(text, /\n {2}\? {6}the agent runs: there is no kubeconfig for the managed cluster/)
  assert.match(
    text,
    /Begin with denied-after-accept\. For the hub run:\n\n {4}clusteradm accept --clusters c1 --context hub\n/,
  )
})

test('R1.64 docs/troubleshooting.md has an entry for every fault', () => {
  const page = readFileSync(new URL('../../../docs/troubleshooting.md', import.meta.url), 'utf8')
  const entries = [...page.matchAll(/^### (.+)$/gm)].map(([, title = '']) => title)
  assert.deepEqual([...entries].toSorted(), faults.map((fault) => `\`${fault}\``).toSorted())
})
