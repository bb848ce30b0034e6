/** The rules about add-ons on snapshots made by hand: what cannot be planted on this machine, and what must not be called stuck. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClusterManagementAddOn, ManagedClusterAddOn, ManifestWork } from '../../api/index.ts'
import type { CertificateSigningRequest } from '../../kube/index.ts'
import { addOnSteps } from './add-on-steps.ts'
import type { AddOnHubView, KeptCredential } from './add-on-view.ts'
import { walk, type Seen, type StepResult } from './faults.ts'
import type { HubView, ManagedView, Snapshot } from './snapshot.ts'

const now = Date.parse('2026-05-01T12:00:00Z')
const at = (seconds: number): string => new Date(now + seconds * 1000).toISOString()
const is = <T>(value: T): Seen<T> => ({ is: value })
type Status = NonNullable<ManagedClusterAddOn['status']>
type Registrations = NonNullable<Status['registrations']>

const condition = (type: string, status: 'True' | 'False' | 'Unknown', reason = 'Because', age = 100) => ({
  type,
  status,
  reason,
  message: 'as it is',
  lastTransitionTime: at(-age),
})

const addOn = (status: Status | undefined, name = 'hello', age = 1000): ManagedClusterAddOn => ({
  metadata: { name, namespace: 'c1', uid: `uid-${name}`, creationTimestamp: at(-age) },
  ...(status && { status: { namespace: 'place', ...status } }),
})
const byToken: Registrations = [
  { type: 'kubeClient', kubeClient: { driver: 'token', subject: { user: 'system:serviceaccount:c1:c1-hello-agent' } } },
]
const byCertificate: Registrations = [{ type: 'kubeClient', kubeClient: { driver: 'csr' } }]

interface Change {
  addOns?: Partial<AddOnHubView>
  accepted?: boolean
  works?: ManifestWork[]
  credentials?: KeptCredential[]
  namespaces?: string[]
  managed?: undefined
}

/** Only what these rules look at. */
const snapshot = (change: Change): Snapshot => {
  const { accepted = true, works = [], credentials = [], namespaces = ['place'] } = change
  const cluster = { metadata: { name: 'c1', labels: { env: 'prod' } }, spec: { hubAcceptsClient: accepted } }
  const none: AddOnHubView = { addOns: is([]), catalogue: is([]), requests: is([]), accounts: is([]) }
  const hub: Partial<HubView> = {
    deployments: is([]),
    managers: is([]),
    clusters: is([cluster]),
    works: is(works),
    addOns: { ...none, ...change.addOns },
  }
  const managed: Partial<ManagedView> = {
    namespaces: is(new Set(namespaces)),
    addOnCredentials: is(credentials),
    klusterlet: is({ metadata: { name: 'klusterlet' } }),
  }
  return {
    now,
    name: 'c1',
    program: 'clusteradm',
    words: { hub: ['--context', 'hub'], managed: ['--context', 'c1'] },
    hub: hub as HubView,
    managed: 'managed' in change ? undefined : (managed as ManagedView),
  }
}

type Stuck = Extract<StepResult, { state: 'stuck' }>
const stuckIn = (change: Change): Stuck[] =>
  walk(addOnSteps, snapshot(change)).filter((step): step is Stuck => step.state === 'stuck')
const faultsIn = (change: Change): string[] => stuckIn(change).map(({ fault }) => fault)
const having = (...addOns: ManagedClusterAddOn[]): Change => ({ addOns: { addOns: is(addOns) } })

test('R2.47 a cluster without add-ons, one that is just being registered, and one whose add-ons are well: nothing is stuck', () => {
  const kept = { namespace: 'place', name: 'hello-hub-kubeconfig', data: { kubeconfig: 'x', expiration: at(1000) } }
  const well = addOn({
    registrations: byToken,
    conditions: ['TokenInfrastructureReady', 'AddonTokenRefreshed', 'Available'].map((type) => condition(type, 'True')),
  })
  const young = addOn(
    {
      registrations: byToken,
      conditions: [
        condition('RegistrationApplied', 'False', 'SetPermissionFailed', 1),
        condition('Available', 'False', 'X', 1),
      ],
    },
    'hello',
    1,
  )
  const pending = addOn({
    registrations: [{ type: 'kubeClient' }],
    conditions: [condition('RegistrationApplied', 'False', 'PermissionConfigPending', 60)],
  })
  for (const change of [
    {},
    having(addOn(undefined, 'hello', 1)),
    having(young),
    having(pending),
    { ...having(well), credentials: [kept] },
  ])
    assert.deepEqual(
      walk(addOnSteps, snapshot(change)).filter(({ state }) => state !== 'ok'),
      [],
    )
})

test('R2.47 addon-driver-unsupported: a hub or an agent that does not know the driver gets one that it does', () => {
  const csr = `'{"spec":{"registrationConfiguration":{"addOnKubeClientRegistrationDriver":{"authType":"csr"}}}}'`
  for (const said of [
    condition('AddonTokenRefreshed', 'False', 'DriverUnsupported'),
    condition('RegistrationServed', 'False', 'UnknownDriver'),
  ]) {
    const [first] = stuckIn(having(addOn({ registrations: byCertificate, conditions: [said] })))
    assert.equal(first?.fault, 'addon-driver-unsupported')
    assert.equal(first.command, `kubectl --context c1 patch klusterlet klusterlet --type=merge -p ${csr}`)
  }
})

test('R2.31 R2.47 addon-signer-missing: a hub that signs no client certificates can still issue tokens', () => {
  const csr = (lastUpdateTime: string): CertificateSigningRequest => ({
    metadata: {
      name: 'addon-c1-hello-1',
      creationTimestamp: at(-1000),
      labels: {
        'open-cluster-management.io/cluster-name': 'c1',
        'open-cluster-management.io/addon-name': 'hello',
      },
    },
    spec: { request: '', signerName: 'kubernetes.io/kube-apiserver-client' },
    status: { conditions: [{ type: 'Approved', status: 'True', lastUpdateTime }] },
  })
  const addOns = is([addOn({ registrations: byCertificate })])
  const [first] = stuckIn({ addOns: { addOns, requests: is([csr(at(-100))]) } })
  assert.equal(first?.fault, 'addon-signer-missing')
  assert.match(first.command, /"authType":"token"/)
  assert.deepEqual(faultsIn({ addOns: { addOns, requests: is([csr(at(-1))]) } }), [], 'signing takes a moment')
  const tokens = is([addOn({ registrations: byToken, conditions: [condition('TokenInfrastructureReady', 'True')] })])
  const old = { addOns: { addOns: tokens, requests: is([csr(at(-100))]) } }
  assert.deepEqual(faultsIn(old), [], 'what an add-on asked for before it used tokens')
})

test('R2.47 addon-account-missing: a hub that says nothing of the account is started anew', () => {
  const [first] = stuckIn(having(addOn({ registrations: byToken })))
  assert.equal(first?.fault, 'addon-account-missing')
  assert.match(first.why, /its add-on manager does not run/)
})

test('R2.47 addon-not-installed: a rule that chooses the cluster and was not followed; not one for other clusters', () => {
  const ruled = (rule: string): ClusterManagementAddOn => ({
    metadata: {
      name: 'hello',
      creationTimestamp: at(-100),
      annotations: { 'addon.open-cluster-management.io/install-on': rule },
    },
  })
  const faultsOf = (rule: string): string[] => faultsIn({ addOns: { catalogue: is([ruled(rule)]) } })
  assert.deepEqual(faultsOf('env=prod'), ['addon-not-installed'])
  assert.deepEqual(faultsOf('env=test'), [])
  const placements = { metadata: { name: 'hello' }, spec: { installStrategy: { type: 'Placements' as const } } }
  const steps = walk(addOnSteps, snapshot({ addOns: { catalogue: is([placements]) } }))
  assert.match(
    steps.map((step) => (step.state === 'unknown' ? step.why : '')).join(''),
    /placements, which this hub does not follow.*clusteradm addon enable --names hello --clusters c1/,
  )
})

test('R2.47 addon-unavailable: the workloads of the add-on are restarted, and others that are stuck alike are named', () => {
  const work: ManifestWork = {
    metadata: {
      name: 'addon-a-deploy-0',
      namespace: 'c1',
      ownerReferences: [{ apiVersion: 'x', kind: 'x', name: 'a', uid: 'uid-a' }],
    },
    spec: { workload: { manifests: [{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'a-agent' } }] } },
  }
  const stopped = [condition('Available', 'False', 'ManagedClusterAddOnLeaseUpdateStopped')]
  const addOns = ['b', 'a'].map((name) => addOn({ registrations: [], conditions: stopped }, name))
  const [first] = stuckIn({ ...having(...addOns), works: [work] })
  assert.equal(first?.command, 'kubectl --context c1 -n place rollout restart deployment/a-agent')
  assert.equal(first.why, 'add-on a: as it is; add-ons that are stuck alike: b')
})

test('R2.47 what could not be looked at, and add-ons of a cluster that is not let in, are neither good nor bad', () => {
  const one = addOn({ registrations: byToken, conditions: [condition('AddonTokenRefreshed', 'True')] })
  const states = (change: Change): Set<string> => new Set(walk(addOnSteps, snapshot(change)).map(({ state }) => state))
  assert.deepEqual(states({ addOns: { addOns: { unseen: 'you may not' } } }), new Set(['unknown']))
  assert.ok(!states({ ...having(one), accepted: false }).has('stuck'))
  const ready = {
    ...one,
    status: { ...one.status, conditions: [...one.status!.conditions!, condition('TokenInfrastructureReady', 'True')] },
  }
  assert.ok(!states({ ...having(ready), managed: undefined }).has('stuck'))
})
