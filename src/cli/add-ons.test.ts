/** Add-ons from the command line: made of manifests, enabled, seen, disabled; on a hub whose controllers run. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  asCluster,
  conditionOf,
  createClusters,
  declare,
  installHubCrds,
  runAddOnHub,
} from '../../testkit/add-on-hub.ts'
import { eventually, runCli, startControlPlane, type CliResult, type ControlPlane } from '../../testkit/index.ts'
import { rule } from '../../testkit/people.ts'
import {
  AddOnDeploymentConfig,
  AddOnTemplate,
  annotation,
  ClusterManagementAddOn,
  conditionType,
  ManagedClusterAddOn,
  ManifestWork,
} from '../api/index.ts'
import { accountName } from '../addons/contract.ts'
import { ClusterRole, type Client, type KubeObject } from '../kube/index.ts'

let plane: ControlPlane
let admin: Client
let manifests: string
before(async () => {
  plane = await startControlPlane({ audit: false })
  admin = plane.client()
  await installHubCrds(admin)
  await admin.of(ClusterRole).create({ metadata: { name: 'hello-agent' }, rules: [rule('get', 'configmaps')] })
  manifests = join(plane.folder, 'hello.yaml')
  writeFileSync(
    manifests,
    JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'hello', namespace: 'default' } }),
  )
})
after(() => plane.stop())

const run = (line: string): Promise<CliResult> => runCli([...line.split(' '), '--kubeconfig', plane.kubeconfig])
const ok = async (line: string): Promise<CliResult> => {
  const result = await run(line)
  assert.equal(result.code, 0, `${line}\n${result.err}`)
  return result
}
const refused = async (code: number, line: string): Promise<string> => {
  const result = await run(line)
  assert.equal(result.code, code, `${line}\n${result.err}${result.out}`)
  assert.equal(result.out, '')
  return result.err
}
const enabledOn = async (name: string): Promise<string[]> =>
  (await admin.of(ManagedClusterAddOn).list()).items
    .filter(({ metadata }) => metadata.name === name)
    .map(({ metadata }) => metadata.namespace!)
    .toSorted()

test('an add-on is made of manifests, enabled, listed with driver, subject and expiry, and disabled where it is named', async (t) => {
  await runAddOnHub(t, plane)
  await createClusters(admin, ['c1', 'c2'])

  const dry = await ok(`addon create hello -f ${manifests} --dry-run`)
  assert.match(dry.out, /AddOnTemplate hello-0.0.1: created/)
  assert.equal(await admin.of(AddOnTemplate).find('hello-0.0.1'), undefined)
  const made = await ok(
    `addon create hello -f ${manifests} --hub-registration --cluster-role-bind hello-agent --labels team=a`,
  )
  assert.equal(
    made.out,
    'AddOnTemplate hello-0.0.1: created\nClusterManagementAddOn hello: created, with template hello-0.0.1\n',
  )
  assert.match(made.err, /addon enable --names hello --clusters/)
  const template = await admin.of(AddOnTemplate).get('hello-0.0.1')
  assert.deepEqual(template.spec.registration, [
    {
      type: 'KubeClient',
      kubeClient: { hubPermissions: [{ type: 'CurrentCluster', currentCluster: { clusterRoleName: 'hello-agent' } }] },
    },
  ])
  const catalogue = await admin.of(ClusterManagementAddOn).get('hello')
  assert.deepEqual(catalogue.spec?.defaultConfigs, [
    { group: 'addon.open-cluster-management.io', resource: 'addontemplates', name: 'hello-0.0.1' },
  ])
  assert.equal(catalogue.metadata.labels?.['team'], 'a')
  assert.match((await ok('get addons')).out, /^NAME .*\nhello {3,}\(nowhere\)\n$/)

  const first = await ok('addon enable --names hello --clusters c1,c2 --labels tier=gold')
  assert.equal(first.out, 'add-on hello on cluster c1: enabled\nadd-on hello on cluster c2: enabled\n')
  assert.equal((await ok('addon enable hello -c c1')).out, 'add-on hello on cluster c1: is enabled already\n')
  const again = await ok('addon enable hello --cluster c1 -n elsewhere --annotate note=1')
  assert.equal(again.out, 'add-on hello on cluster c1: updated\n')
  const addOn = await admin.of(ManagedClusterAddOn, 'c1').get('hello')
  assert.equal(addOn.metadata.annotations?.[annotation.installNamespace], 'elsewhere')
  assert.equal(addOn.metadata.annotations?.['note'], '1')
  assert.equal(addOn.metadata.labels?.['tier'], 'gold')
  await eventually(
    async () => {
      const works = (await admin.of(ManifestWork, 'c1').list()).items
      assert.ok(works.some(({ spec }) => spec.workload?.manifests?.[0]?.kind === 'ConfigMap'))
    },
    { timeoutMs: 60_000 },
  )

  const agent = asCluster(plane, 'c1')
  const user = `system:serviceaccount:c1:${accountName('c1', 'hello')}`
  await declare(agent, 'c1', 'hello', 'token', { user })
  await conditionOf(admin, 'c1', 'hello', conditionType.addOn.tokenInfrastructureReady, (one) => one?.status === 'True')
  const expires = new Date(Date.now() + 40 * 86_400_000).toISOString()
  const said = { lastTransitionTime: new Date().toISOString(), reason: 'AddonTokenRefreshed', status: 'True' }
  const message = `Addon token refreshed, expires at ${expires}`
  await eventually(async () => {
    const now = await admin.of(ManagedClusterAddOn, 'c1').get('hello')
    const others = (now.status?.conditions ?? []).filter(({ type }) => type !== 'AddonTokenRefreshed')
    const conditions = [...others, { ...said, type: 'AddonTokenRefreshed', message }]
    const { resourceVersion } = now.metadata
    await agent
      .of(ManagedClusterAddOn, 'c1')
      .patch('hello', { merge: { metadata: { resourceVersion }, status: { conditions } } }, { subresource: 'status' })
  })
  // No agent applies its work here.
  await conditionOf(admin, 'c1', 'hello', conditionType.addOn.available, (one) => one?.status === 'False')
  const [listed] = JSON.parse((await ok('get addons hello -o json')).out) as { clusters: Record<string, unknown>[] }[]
  const { problem, ...facts } = listed!.clusters[0]!
  assert.deepEqual(facts, {
    name: 'c1',
    available: 'False',
    namespace: 'elsewhere',
    driver: 'token',
    subject: user,
    expires,
    signers: [],
  })
  assert.match(String(problem), /^ManifestApplied: /)
  const table = (await ok('get addons --clusters c1')).out
  assert.match(table, /^NAME {3,}CLUSTER {3,}AVAILABLE {3,}DRIVER {3,}SUBJECT {3,}EXPIRES {3,}PROBLEM\n/)
  assert.match(table, new RegExp(`hello {3,}c1 {3,}False {3,}token {3,}${user} {3,}in 39d {3,}ManifestApplied: `))
  assert.doesNotMatch(table, /c2/)
  const late = await runCli(['get', 'addons', 'hello', '--kubeconfig', plane.kubeconfig], {
    clock: { now: () => Date.parse(expires) + 1000, after: () => () => {} },
  })
  assert.match(late.out, new RegExp(`${user} {3,}expired`))

  assert.match(
    await refused(2, 'addon disable --names hello'),
    /--clusters is missing: name the clusters, or say --all-clusters/,
  )
  assert.deepEqual(await enabledOn('hello'), ['c1', 'c2'])
  assert.equal(
    (await ok('addon disable hello --all-clusters --dry-run')).out,
    'add-on hello on cluster c1: would be disabled\nadd-on hello on cluster c2: would be disabled\n',
  )
  assert.deepEqual(await enabledOn('hello'), ['c1', 'c2'])
  assert.match((await ok('addon disable hello --clusters c2')).out, /add-on hello on cluster c2: disabled\n$/)
  assert.deepEqual(await enabledOn('hello'), ['c1'])
  assert.equal(
    (await ok('addon disable hello --clusters c1,c2 --no-wait')).out,
    'add-on hello on cluster c2: is not enabled\nadd-on hello on cluster c1: disabled\n',
  )
})

test('a new version is a new template; a rule installs an add-on, and disabling it by hand says so', async (t) => {
  await runAddOnHub(t, plane)
  await createClusters(admin, ['c3'])
  await ok(`addon create ruled -f ${manifests} --install-on *`)
  await eventually(async () => assert.ok((await enabledOn('ruled')).includes('c3')), { timeoutMs: 60_000 })
  assert.match(
    await refused(1, 'addon disable ruled --clusters c3'),
    /installed by rule, and would come back\n {2}change the rule: kubectl annotate .* ruled addon.open-cluster-management.io\/install-on=/,
  )
  assert.match((await ok(`addon create ruled -f ${manifests}`)).out, /AddOnTemplate ruled-0.0.1: unchanged/)
  const other = join(plane.folder, 'other.yaml')
  writeFileSync(other, 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: other, namespace: default }\n')
  assert.match(
    await refused(1, `addon create ruled -f ${other}`),
    /there is an AddOnTemplate ruled-0.0.1 with something else in it\n {2}give another --version, or --overwrite/,
  )
  assert.match((await ok(`addon create ruled -f ${other} --overwrite`)).out, /ruled-0.0.1: updated/)
  assert.deepEqual(
    (await admin.of(AddOnTemplate).get('ruled-0.0.1')).spec.agentSpec.workload?.manifests?.map(
      (one) => (one as unknown as KubeObject).metadata.name,
    ),
    ['other'],
  )
  const next = await ok(`addon create ruled -f ${manifests} --version 0.0.2`)
  assert.match(next.out, /ClusterManagementAddOn ruled: uses template ruled-0.0.2/)
  const catalogue = await admin.of(ClusterManagementAddOn).get('ruled')
  assert.deepEqual(
    catalogue.spec?.defaultConfigs?.map(({ name }) => name),
    ['ruled-0.0.2'],
  )
  assert.equal(catalogue.metadata.annotations?.['addon.open-cluster-management.io/install-on'], '*')

  const config = join(plane.folder, 'config.yaml')
  writeFileSync(
    config,
    `apiVersion: ${AddOnDeploymentConfig.group}/v1beta1\nkind: AddOnDeploymentConfig\nmetadata: { name: settings, namespace: default }\nspec: { agentInstallNamespace: there }\n`,
  )
  assert.match((await ok(`addon enable ruled --clusters c3 --config-file ${config}`)).out, /c3: updated/)
  assert.equal((await admin.of(AddOnDeploymentConfig, 'default').get('settings')).spec?.agentInstallNamespace, 'there')
  const using = [
    { group: AddOnDeploymentConfig.group, resource: 'addondeploymentconfigs', namespace: 'default', name: 'settings' },
  ]
  assert.deepEqual((await admin.of(ManagedClusterAddOn, 'c3').get('ruled')).spec?.configs, using)
  await ok('addon enable ruled --clusters c3 --config default/settings')
  assert.deepEqual((await admin.of(ManagedClusterAddOn, 'c3').get('ruled')).spec?.configs, using)
})

test('bad input: nothing is written, and the line says what to write', async () => {
  const versions = async (): Promise<string[]> => {
    const lists = await Promise.all(
      [AddOnTemplate, ClusterManagementAddOn, ManagedClusterAddOn].map((kind) =>
        admin.of(kind as typeof AddOnTemplate).list(),
      ),
    )
    return lists.flatMap(({ items }) => items.map(({ metadata }) => `${metadata.name} ${metadata.generation}`))
  }
  const before = await versions()
  assert.match(await refused(2, 'addon create Bad_Name -f x'), /"Bad_Name" is no name for an add-on: at most 63/)
  assert.match(await refused(2, 'addon create a.b -f x'), /"a.b" is no name for an add-on/)
  assert.match(await refused(2, 'addon create x'), /-f is missing/)
  assert.match(
    await refused(2, `addon create x -f ${manifests} --placement-ref a/b`),
    /no placements; use --install-on/,
  )
  assert.match(await refused(2, `addon create x -f ${manifests} --cluster-role-bind y`), /needs --hub-registration/)
  assert.match(await refused(2, `addon create x -f ${manifests} --version 1_0`), /--version "1_0" cannot end a name/)
  assert.match(await refused(2, `addon create x -f ${manifests} --install-on prod`), /--install-on: write key=value/)
  assert.match(
    await refused(1, `addon create x -f ${manifests} --hub-registration --cluster-role-bind hello-agnt`),
    /no ClusterRole hello-agnt\n {2}did you mean hello-agent\?/,
  )
  assert.match(await refused(1, `addon create x -f ${join(plane.folder, 'gone')}`), /cannot be read: ENOENT/)
  assert.match(await refused(2, 'addon enable --clusters c1'), /--names is missing/)
  assert.match(
    await refused(2, 'addon enable hello'),
    /--clusters is missing: name the clusters, or say --all-clusters/,
  )
  assert.match(await refused(2, 'addon enable hello --clusters c1 --all-clusters'), /say different things/)
  assert.match(
    await refused(1, 'addon enable helo --clusters c3'),
    /there is no add-on helo\n {2}did you mean hello\?.*\n {2}make it one: clusteradm addon create helo/,
  )
  assert.match(await refused(1, 'addon enable hello --clusters c9'), /there is no cluster c9/)
  assert.match(await refused(2, 'addon enable hello --clusters c3 --labels prod'), /--labels: write key=value/)
  assert.match(await refused(2, 'addon enable hello --clusters c3 --config x'), /--config takes NAMESPACE\/NAME/)
  assert.match(
    await refused(1, 'addon enable hello --clusters c3 --config default/nope'),
    /no AddOnDeploymentConfig default\/nope/,
  )
  assert.match(
    await refused(1, `addon enable hello --clusters c3 --config-file ${manifests}`),
    /must hold one AddOnDeploymentConfig/,
  )
  assert.match(await refused(1, 'addon disable nothing --clusters c3'), /there is no enabled add-on nothing/)
  assert.deepEqual(await versions(), before)
})
