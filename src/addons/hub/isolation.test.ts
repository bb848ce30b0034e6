import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import {
  asCluster,
  certificateOf,
  conditionOf,
  createClusters,
  declare,
  enable,
  installHubCrds,
  requestCertificate,
  requestToken,
  runAddOnHub,
  withCertificate,
  withToken,
} from '../../../testkit/add-on-hub.ts'
import { startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { conditionType } from '../../api/index.ts'
import { ApiError, ConfigMap, Secret, ServiceAccount, type Client } from '../../kube/index.ts'
import { inParallel } from '../../runtime/index.ts'
import { defaultSubject, serviceAccountUser } from '../contract.ts'
import { inOwnNamespace, readsOne } from '../rules.ts'
import { defineAddOn } from './definition.ts'

let plane: ControlPlane
let admin: Client
before(async () => {
  plane = await startControlPlane({ audit: false })
  admin = plane.client()
  await installHubCrds(admin)
})
after(() => plane.stop())

const clusters = ['c1', 'c2', 'c10'] // one is the beginning of another
const names = Array.from({ length: 10 }, (_, i) => (i === 9 ? 'a' : `a${i}`)) // and so among the add-ons
const driverOf = (addOn: string) => (names.indexOf(addOn) % 2 === 0 ? 'token' : 'csr')

const addOns = names.map((name) =>
  defineAddOn({
    name,
    manifests: () => [],
    registrations: [{ type: 'kubeClient' }],
    permissions: [inOwnNamespace(readsOne({ resource: 'configmaps', names: [`${name}-data`] }))],
  }),
)

interface Holder {
  cluster: string
  addOn: string
  client: Client
}

const credentialFor = async (agent: Client, cluster: string, addOn: string): Promise<Client> => {
  const driver = driverOf(addOn)
  const subject = defaultSubject(driver, cluster, addOn)
  await declare(agent, cluster, addOn, driver, { user: subject.user, groups: [...subject.groups] })
  const { registrationApplied, tokenInfrastructureReady } = conditionType.addOn
  await conditionOf(admin, cluster, addOn, registrationApplied, (one) => one?.status === 'True')
  if (driver === 'csr') {
    const { name, key } = await requestCertificate(agent, { cluster, addOn, ...subject })
    return withCertificate(plane, await certificateOf(agent, name), key)
  }
  await conditionOf(admin, cluster, addOn, tokenInfrastructureReady, (one) => one?.status === 'True')
  return withToken(plane, await requestToken(agent, cluster, `${cluster}-${addOn}-agent`))
}

/** Ten add-ons on three clusters, by certificate and by token, each with its credential; and something to steal for each. */
const fleet = async (t: TestContext): Promise<Holder[]> => {
  await runAddOnHub(t, plane, { addOns })
  await createClusters(admin, clusters)
  const pairs = clusters.flatMap((cluster) => names.map((addOn) => ({ cluster, addOn })))
  await inParallel(
    8,
    pairs.map(({ cluster, addOn }) => async () => {
      await enable(admin, cluster, addOn)
      await admin.of(ConfigMap, cluster).create({ metadata: { name: `${addOn}-data`, namespace: cluster } })
      await admin.of(Secret, cluster).create({ metadata: { name: `${addOn}-secret`, namespace: cluster } })
    }),
  )
  const agents = new Map(clusters.map((cluster) => [cluster, asCluster(plane, cluster)]))
  const holders: Holder[] = []
  await inParallel(
    6,
    pairs.map(({ cluster, addOn }) => async () => {
      const client = await credentialFor(agents.get(cluster)!, cluster, addOn)
      t.after(() => client.close())
      holders.push({ cluster, addOn, client })
    }),
  )
  return holders
}

/** What became of a request: its status code, 200 when it was granted. */
const outcome = async (request: Promise<unknown>): Promise<number> =>
  request.then(
    () => 200,
    (error: unknown) => {
      if (error instanceof ApiError) return error.status
      throw error
    },
  )

const accountsOf = (cluster: string, addOn: string): string[] => [
  `${cluster}-${addOn}-agent`,
  `${addOn}-agent`,
  'default',
]

test('R2.17 R2.37 ten add-ons on three clusters: each credential opens its own door and none of the others', async (t) => {
  const holders = await fleet(t)
  assert.equal(holders.length, 30)
  const wrong: string[] = []
  let asked = 0
  const expect = (who: Holder, what: string, expected: number, request: () => Promise<unknown>) => async () => {
    asked++
    const got = await outcome(request())
    if (got !== expected) wrong.push(`${who.addOn} of ${who.cluster}: ${what} gave ${got}, not ${expected}`)
  }
  const matrix = holders.flatMap((who) =>
    holders.flatMap(({ cluster, addOn }) => {
      const own = who.cluster === cluster && who.addOn === addOn
      const accounts = accountsOf(cluster, addOn)
      return [
        expect(who, `its data ${cluster}/${addOn}`, own ? 200 : 403, () =>
          who.client.of(ConfigMap, cluster).get(`${addOn}-data`),
        ),
        expect(who, `secret ${cluster}/${addOn}`, 403, () => who.client.of(Secret, cluster).get(`${addOn}-secret`)),
        ...accounts.map((account) =>
          expect(who, `token of ${cluster}/${account}`, 403, () => requestToken(who.client, cluster, account)),
        ),
      ]
    }),
  )
  await inParallel(24, matrix)
  assert.deepEqual(wrong, [])
  assert.equal(asked, 30 * 30 * 5)

  // A cluster requests tokens for its own token add-ons, and for nobody else: no other account, no other cluster.
  const byClusters = clusters.flatMap((caller) => {
    const agent = asCluster(plane, caller)
    const who = { cluster: caller, addOn: 'the agent', client: agent }
    const accounts = clusters.flatMap((cluster) =>
      names.flatMap((addOn) => accountsOf(cluster, addOn).map((name) => ({ cluster, addOn, name }))),
    )
    return [
      ...accounts.map(({ cluster, addOn, name }) => {
        const own = caller === cluster && driverOf(addOn) === 'token' && name === `${cluster}-${addOn}-agent`
        return expect(who, `token of ${cluster}/${name}`, own ? 200 : 403, () => requestToken(agent, cluster, name))
      }),
      ...['default', 'namespace-controller', 'clusterrole-aggregation-controller'].map((name) =>
        expect(who, `token of kube-system/${name}`, 403, () => requestToken(agent, 'kube-system', name)),
      ),
    ]
  })
  await inParallel(24, byClusters)
  assert.deepEqual(wrong, [])
})

test('R2.19 R2.37 whatever subject a cluster writes, its add-on gets no more than its own', async (t) => {
  await runAddOnHub(t, plane, { addOns })
  const agent = asCluster(plane, 'c1')
  const { tokenInfrastructureReady, registrationApplied } = conditionType.addOn
  const tokenSubjects = [
    serviceAccountUser('c2', 'c2-a0-agent'),
    serviceAccountUser('c1', 'c1-a2-agent'),
    serviceAccountUser('kube-system', 'default'),
    'system:open-cluster-management:c1:agent1',
    'system:admin',
  ]
  for (const user of tokenSubjects) {
    await declare(agent, 'c1', 'a0', 'token', { user, groups: ['system:masters'] })
    for (const type of [tokenInfrastructureReady, registrationApplied])
      await conditionOf(
        admin,
        'c1',
        'a0',
        type,
        (one) => one?.reason === 'SubjectRefused' && one.message.includes(user),
      )
    assert.equal(await outcome(requestToken(agent, 'c1', 'c1-a0-agent')), 403)
    assert.equal(await outcome(requestToken(agent, 'c2', 'c2-a0-agent')), 403)
  }
  const own = defaultSubject('csr', 'c1', 'a1')
  const certificateSubjects = [
    { user: 'system:admin', groups: [] },
    { user: own.user, groups: ['system:masters'] },
    { user: defaultSubject('csr', 'c2', 'a1').user, groups: [] },
    { user: `${own.user}:more`, groups: [] },
  ]
  for (const { user, groups } of certificateSubjects) {
    await declare(agent, 'c1', 'a1', 'csr', { user, groups })
    await conditionOf(admin, 'c1', 'a1', registrationApplied, (one) => one?.reason === 'SubjectRefused')
  }
  // The account of another add-on has stayed what it was.
  assert.ok(await admin.of(ServiceAccount, 'c1').find('c1-a2-agent'))
  await declare(agent, 'c1', 'a0', 'token', { user: defaultSubject('token', 'c1', 'a0').user })
  await conditionOf(admin, 'c1', 'a0', registrationApplied, (one) => one?.status === 'True')
})
