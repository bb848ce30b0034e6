/** Clusters on EKS through the specification's commands, with operators, pods and roles, in all partitions and all ways in. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManagedCluster, ManifestWork } from '../src/api/index.ts'
import { CertificateSigningRequest, ClusterRole } from '../src/kube/index.ts'
import { findCondition, isTrue } from '../src/runtime/index.ts'
import { foreignMapping, runCleanup, startIrsaScene, type IrsaScene } from './e2e-irsa-scene.ts'
import { startShell } from './e2e-irsa-shell.ts'
import type { LocalEksOptions } from './eks/index.ts'
import { eventually } from './index.ts'
import { inventory } from './inventory.ts'
import { grantsOf, leftInAws, mapRolesOf } from './irsa-hub.ts'

const patience = { timeoutMs: 180_000 }
const name = 'managed-0'

const role = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: 'pod-reader' },
  rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }],
}

/** Objects that come and go with pods, and with time. */
const passing = /^(pods|jobs|replicasets|leases|endpoint|events|controllerrevisions|configmaps .*kube-root-ca)/
const objects = async (plane: IrsaScene['managed']): Promise<string[]> =>
  (await inventory(plane)).filter((one) => !passing.test(one))

/** The specification's commands, as they stand there. */
const init = ({ eks }: IrsaScene): string[] =>
  `init --wait --registration-auth=aws-irsa --context ${eks.hubArn}`.split(' ')
const join0 = ({ eks }: IrsaScene, token: string): string[] =>
  `join --registration-auth=aws-irsa --hub-token ${token} --hub-apiserver ${eks.hub.server} --eks-hub-cluster-arn ${eks.hubArn} --cluster-name ${name}`.split(
    ' ',
  )
const accept = `accept --clusters ${name}`.split(' ')

const clusters = ({ eks }: IrsaScene) => eks.hub.client().of(ManagedCluster)

const hasJoined = (scene: IrsaScene): Promise<unknown> =>
  eventually.watching(
    clusters(scene),
    ([cluster]) => {
      for (const type of ['HubAcceptedManagedCluster', 'ManagedClusterJoined', 'ManagedClusterConditionAvailable'])
        assert.ok(cluster && isTrue(cluster, type), `${type} of ${JSON.stringify(cluster?.status?.conditions)}`)
    },
    patience,
  )

/** A work goes out, and arrives. */
const works = async (scene: IrsaScene): Promise<void> => {
  const { eks, managed } = scene
  const file = join(eks.hub.folder, 'role.json')
  writeFileSync(file, JSON.stringify(role))
  await scene.at('hub', ['create', 'work', 'rbac', '-f', file, '--clusters', name, '--wait'])
  assert.ok(isTrue(await eks.hub.client().of(ManifestWork, name).get('rbac'), 'Applied'))
  assert.deepEqual((await managed.client().of(ClusterRole).get('pod-reader')).rules, role.rules)
}

/** The cluster leaves with what its work brought, and tells the hub by itself; the work is still there. */
const leaves = async (scene: IrsaScene): Promise<void> => {
  const unjoin = ['unjoin', '--cluster-name', name]
  const refused = await scene.attempt('managed', unjoin)
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /still carries out 1 works: rbac/)
  const { code, stderr } = await scene.attempt('managed', [...unjoin, '--force'])
  assert.equal(code, 0, `${stderr}\n${scene.told()}`)
  assert.doesNotMatch(stderr, /was not told/)
  const work = await scene.eks.hub.client().of(ManifestWork, name).get('rbac')
  assert.deepEqual([work.metadata.deletionTimestamp, work.metadata.finalizers], [undefined, undefined])
}

/** What was there, and stays. */
interface Before {
  aws?: string[]
  hub: string[]
  managed: string[]
}

/** Nothing in AWS, nothing on either cluster; the ManagedCluster alone remains, and the CronJob takes it away. */
const nothingIsLeft = async (scene: IrsaScene, before: Before): Promise<void> => {
  const { eks, managed } = scene
  const admin = eks.hub.client()
  await eventually(async () => {
    assert.deepEqual([await leftInAws(eks), await grantsOf(admin)], [before.aws ?? [], []])
    assert.equal(await mapRolesOf(admin), foreignMapping)
    assert.deepEqual(await objects(managed), before.managed)
    const said = findCondition(await clusters(scene).get(name), 'HubAcceptedManagedCluster')
    assert.equal(said?.message, 'Denied by hub cluster admin', 'all is revoked')
  }, patience)
  const left = await clusters(scene).get(name)
  assert.equal(left.spec.hubAcceptsClient, false)
  assert.equal(findCondition(left, 'ManagedClusterJoined')?.reason, 'ManagedClusterLeft')
  await runCleanup(eks.hub)
  await eventually(async () => assert.deepEqual(await objects(eks.hub), before.hub), patience)
}

interface Case extends LocalEksOptions {
  automatic?: boolean
}
const cases: Case[] = [
  { access: 'aws-auth', partition: 'aws-cn' },
  { access: 'aws-auth', partition: 'aws-us-gov', automatic: true },
]

for (const { automatic = false, ...options } of cases)
  test(`R1.2 R1.12 R1.31 R1.32 R1.54 R1.56 R1.58 init, join, ${automatic ? 'no accept' : 'accept'}, work and unjoin as the specification writes them, by ${options.access} in ${options.partition}: it works, and one that leaves with its work leaves nothing`, async (t) => {
    const scene = await startIrsaScene(options)
    t.after(() => t.passed || t.diagnostic(scene.told()))
    t.after(() => scene[Symbol.asyncDispose]())
    const { eks, managed } = scene
    const approval = [
      '--feature-gates=ManagedClusterAutoApproval=true',
      `--auto-approved-arn-patterns=${scene.managedArn.replace('m1', '[a-z0-9]+')}`,
    ]
    const before = await objects(managed)
    await scene.at('hub', [...init(scene), ...(automatic ? approval : [])])
    const ticket = JSON.parse(await scene.at('hub', ['get', 'token', '-o', 'json'])) as Record<string, string>
    assert.ok(ticket['join-command']!.includes(`--registration-auth=aws-irsa --eks-hub-cluster-arn ${eks.hubArn}`))
    const hub = await objects(eks.hub)

    await scene.at('managed', join0(scene, ticket['hub-token']!))
    if (!automatic) {
      await eventually.watching(clusters(scene), (all) => assert.equal(all[0]?.metadata.name, name), patience)
      await scene.at('hub', accept, scene.person)
    }
    await hasJoined(scene)
    assert.deepEqual((await eks.hub.client().of(CertificateSigningRequest).list()).items, [], 'no CSR was ever made')
    await works(scene)

    await leaves(scene)
    await nothingIsLeft(scene, { hub, managed: before })
  })

/** The blocks of a page that a person is to run, each with the heading that it stands under. */
const blocksOf = (page: string): { heading: string; script: string }[] =>
  page.split(/^## /m).flatMap((section) => {
    const heading = section.slice(0, section.indexOf('\n'))
    return [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, script]) => ({ heading, script: script! }))
  })

test('R1.29 R1.31 R1.34 R1.54 R1.58 R1.61 the commands of the guide lead from two EKS clusters to a joined one, by access entries, and back to nothing', async (t) => {
  const page = readFileSync(new URL('../docs/guides/aws-irsa.md', import.meta.url), 'utf8')
  const scene = await startIrsaScene({ access: 'access-entries', partition: 'aws', bare: true })
  t.after(() => t.passed || t.diagnostic(scene.told()))
  t.after(() => scene[Symbol.asyncDispose]())
  const { eks, managed } = scene
  const run = await startShell(scene)
  const before = { aws: await leftInAws(eks), managed: await objects(managed) }
  let hub: string[] = []
  const seen: string[] = []
  for (const { heading, script } of blocksOf(page)) {
    await run(script)
    seen.push(heading)
    if (heading.includes('Contexts'))
      assert.equal(
        await run('kubectl auth whoami -o jsonpath={.status.userInfo.username}'),
        'arn:aws:iam::222222222222:user/admin-of-m1',
        'AWS says who comes with the kubeconfig that the CLI of AWS wrote',
      )
    if (heading.includes('The hub')) hub = await objects(eks.hub)
    if (heading.includes('Let it in')) await hasJoined(scene)
    if (heading.includes('Use it'))
      assert.ok(isTrue(await eks.hub.client().of(ManifestWork, name).get('rbac'), 'Applied'))
  }
  assert.equal(new Set(seen).size, 8, `headings with commands: ${seen.join(', ')}`)
  assert.deepEqual((await eks.hub.client().of(CertificateSigningRequest).list()).items, [], 'no CSR was ever made')
  await nothingIsLeft(scene, { hub, ...before })
})
