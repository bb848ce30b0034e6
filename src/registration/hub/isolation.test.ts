import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { agentOf, clusterOf, createCluster, createWork, runHub, setAccepts } from '../../../testkit/registration-hub.ts'
import {
  about,
  columns,
  granted,
  hasOnlyTheRulesOf,
  matrixOf,
  reachesOnlyItsOwn,
  rows,
} from '../../../testkit/isolation.ts'
import type { Column, Standing } from '../../../testkit/isolation.ts'
import { crds, group, installCrds, ManagedCluster } from '../../api/index.ts'
import { mayAccess, type Client } from '../../kube/index.ts'
import { findCondition, isTrue } from '../../runtime/index.ts'
import { Accepted, Deleting } from '../contract.ts'

let plane: ControlPlane
let client: Client
before(async () => {
  plane = await startControlPlane({ controllerManager: false, audit: false })
  client = plane.client()
  await installCrds(client, crds({ conversion: 'none' }))
})
after(() => plane.stop())

const clusters = ['m1', 'm2', 'm3', 'm4', 'm5']
const titles: Record<Standing, string> = {
  accepted: 'Accepted (`spec.hubAcceptsClient: true`)',
  leaving: 'Leaving: denied or deleted, works remain, and its time is not up',
  denied: 'Denied: no works remain, or its time is up',
  deleted: 'Deleted: the ManagedCluster is gone',
}

const table = (standing: Standing, cells: Record<string, string>): string => {
  const cell = (row: string, column: Column): string => cells[`${row} | ${column}`] ?? '–'
  const some = rows.filter((row) => columns.some((column) => cells[`${row} | ${column}`]))
  const lines = some.map((row) => `| ${row} | ${columns.map((column) => cell(row, column)).join(' | ')} |`)
  const head = [`| | ${columns.join(' | ')} |`, `|${'---|'.repeat(columns.length + 1)}`]
  return [
    `## ${titles[standing]}`,
    '',
    ...(lines.length ? [...head, ...lines, ''] : []),
    lines.length ? 'Nothing on any other kind.' : 'Nothing on any kind.',
    '',
  ].join('\n')
}

const page = (matrices: Record<Standing, Record<string, string>>): string => {
  const standings = Object.keys(titles) as Standing[]
  return [
    '# What a managed cluster can do on the hub',
    '',
    'Written by `UPDATE=1 node --test src/registration/hub/isolation.test.ts`, and compared at every test run. Five clusters join a hub, and',
    'the API server is asked what each of them may do, with the groups of a certificate and with the group of an EKS access entry: all rules',
    'that it finds in every namespace, then each verb on each kind below in the cluster’s own namespace, in those of the other clusters, in',
    'the hub’s, and everywhere at once, and on each ManagedCluster by name; and a sample of requests is really sent.',
    '`renew` is a right that only the hub’s approval of certificates looks at; it also checks that a cluster renews its own.',
    '',
    ...standings.map((standing) => table(standing, matrices[standing])),
    '## What was asked about',
    '',
    ...rows.map((row) => `- ${row}`),
    '',
  ].join('\n')
}

const certificate = (cluster: string) => agentOf(cluster)
const accessEntry = (cluster: string) => ({
  username: cluster,
  groups: [`open-cluster-management:${cluster}`, 'system:authenticated'],
})

test('R1.59 a cluster’s credentials reach its own namespace and its own ManagedCluster, and nothing else', async (t) => {
  const hub = await runHub(t, plane)
  await Promise.all(clusters.map((name) => createCluster(client, name)))
  await eventually.watching(
    client.of(ManagedCluster),
    (all) => all.filter((c) => isTrue(c, Accepted.type)).length === 5,
  )
  // The authorizer has caches of its own.
  await eventually(() => Promise.all(clusters.map(canReadWorks)).then((may) => may.every(Boolean)))

  const matrices = {} as Record<Standing, Record<string, string>>
  matrices.accepted = await matrixOf(about(client, certificate('m5')), 'm5', ['m1', 'm2', 'm3', 'm4'])
  assert.deepEqual(matrices.accepted, granted.accepted, 'm5 by certificate')
  const byEntry = await matrixOf(about(client, accessEntry('m2')), 'm2', ['m1'])
  assert.deepEqual(byEntry, granted.accepted, 'm2 by access entry')
  for (const cluster of clusters) await hasOnlyItsRules('accepted', cluster)
  const { username: user, groups } = certificate('m1')
  await reachesOnlyItsOwn(plane.client({ user, groups }), 'm1', 'm2')

  await createWork(client, 'm4', 'w')
  await createWork(client, 'm5', 'w')
  await Promise.all([
    setAccepts(client, 'm2', false),
    client.of(ManagedCluster).delete('m3'),
    setAccepts(client, 'm4', false),
    client.of(ManagedCluster).delete('m5'),
  ])
  await eventually(async () => {
    const [m2, m3, m4, m5] = await Promise.all(['m2', 'm3', 'm4', 'm5'].map((name) => clusterOf(client, name)))
    assert.equal(findCondition(m2!, Accepted.type)?.message, 'Denied by hub cluster admin')
    assert.equal(m3, undefined)
    assert.match(findCondition(m4!, Accepted.type)!.message, /1 left/)
    assert.equal(findCondition(m5!, Deleting.type)?.reason, 'ResourceRemaining')
  })
  await hub.stop()
  await eventually(
    async () =>
      !(await mayAccess(client, certificate('m3'), {
        group: group.cluster,
        resource: 'managedclusters',
        name: 'm3',
        verb: 'get',
      })),
  )
  const cases: [Standing, string][] = [
    ['denied', 'm2'],
    ['deleted', 'm3'],
    ['leaving', 'm4'],
    ['leaving', 'm5'],
  ]
  for (const [standing, cluster] of cases) await hasOnlyItsRules(standing, cluster)
  for (const [standing, cluster] of cases.slice(0, 3)) {
    matrices[standing] = await matrixOf(about(client, certificate(cluster)), cluster, ['m1'])
    assert.deepEqual(matrices[standing], granted[standing], `${cluster} ${standing}`)
  }

  const file = 'docs/isolation.md'
  const text = page(matrices)
  if (process.env['UPDATE']) writeFileSync(file, text)
  assert.equal(
    existsSync(file) && readFileSync(file, 'utf8'),
    text,
    `${file} differs: look why, then run with UPDATE=1`,
  )
})

/** By either of its groups. */
const hasOnlyItsRules = async (standing: Standing, cluster: string): Promise<void> => {
  for (const { username: user, groups } of [certificate(cluster), accessEntry(cluster)])
    await hasOnlyTheRulesOf(standing, cluster, { as: client.as({ user, groups }), admin: client })
}

const canReadWorks = (cluster: string): Promise<boolean> =>
  mayAccess(client, certificate(cluster), {
    group: group.work,
    resource: 'manifestworks',
    namespace: cluster,
    verb: 'get',
  })
