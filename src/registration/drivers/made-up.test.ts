/** The plug-in point: a strategy that nobody has heard of joins a cluster, by a folder and its line in the table. */
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  eventually,
  keptFolder,
  removeKeptFolder,
  sendTo,
  startAgent,
  startControlPlane,
  startHub,
} from '../../../testkit/index.ts'
import { ManagedCluster } from '../../api/index.ts'
import { CertificateSigningRequest, decoded, Secret } from '../../kube/index.ts'
import { isTrue } from '../../runtime/index.ts'

const root = new URL('../../..', import.meta.url).pathname

/** Somebody gave the agent a badge, and its hub knows whose it is. */
const badgeDriver = `
import type { AgentDriver, HubDriver } from '../driver.ts'
import { asBootstrapUser, asHolder, hubFromKubeconfig } from '../kubeconfig-hub.ts'

const note = 'example.com/badge'

export const badgeHubDriver = (): HubDriver => ({
  name: 'badge',
  serves: ({ metadata }) => metadata.annotations?.[note] !== undefined,
  waitsForPerson: ({ metadata }) =>
    metadata.annotations?.[note] === 'good' ? undefined : { reason: 'BadBadge', message: 'a person looks at it' },
  grant: async () => {},
  revoke: async () => {},
})

export const badgeAgentDriver = ({ env = {} }: { env?: Record<string, string | undefined> | undefined }): AgentDriver => ({
  name: 'badge',
  unusable: (secret) => (secret['badge'] ? undefined : { reason: 'BadgeMissing', message: 'there is no badge yet' }),
  renewAt: () => Number.POSITIVE_INFINITY,
  expiresAt: () => undefined,
  obtain: async () => ({ badge: env['BADGE'] ?? '' }),
  describe: (cluster) => ({
    ...cluster,
    metadata: { ...cluster.metadata, annotations: { ...cluster.metadata.annotations, [note]: 'good' } },
  }),
  hubOf: (bootstrap, source) => hubFromKubeconfig(bootstrap, source, env),
  asBootstrap: (bootstrap, source, options) => asBootstrapUser(bootstrap, source, options, env),
  asCluster: (secret, hub, options) => asHolder(() => ({ token: secret()['badge'] }), hub, options),
  kubeconfigUser: () => ({ tokenFile: 'badge' }),
  forAddOn: () => {
    throw new RangeError('badges are for clusters only')
  },
})
`

/** The program as it would be with one driver more: everything else is as it is. */
const withBadges = (folder: string): string => {
  for (const part of ['src', 'bin', 'package.json']) cpSync(join(root, part), join(folder, part), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const drivers = join(folder, 'src/registration/drivers')
  mkdirSync(join(drivers, 'badge'))
  writeFileSync(join(drivers, 'badge/index.ts'), badgeDriver)
  const table = join(drivers, 'index.ts')
  const head = 'export const drivers = {\n'
  const text = readFileSync(table, 'utf8')
  assert.ok(text.includes(head))
  const line = '  badge: { hub: badgeHubDriver, agent: badgeAgentDriver },\n'
  const imported = `import { badgeAgentDriver, badgeHubDriver } from './badge/index.ts'\n`
  writeFileSync(table, imported + text.replace(head, head + line))
  return join(folder, 'bin/lanyard')
}

test('R1.10 a driver made up here joins a cluster: it is one folder, and its line in the table of drivers', async (t) => {
  const folder = keptFolder('made-up')
  t.after(() => removeKeptFolder(folder))
  const program = withBadges(folder)
  const badges = join(folder, 'badges.csv')
  const groups = 'system:open-cluster-management:c1,system:open-cluster-management:managed-clusters'
  writeFileSync(badges, `badge-of-c1,system:open-cluster-management:c1:badge,1,"${groups}"\n`)
  await using plane = await startControlPlane({ apiServerFlags: { 'token-auth-file': badges }, audit: false })
  await startHub(plane, {
    program,
    args: ['--registration-drivers=badge', '--feature-gates=ManagedClusterAutoApproval=true'],
  })
  await sendTo(plane, plane)
  await startAgent(plane, 'c1', { program, args: ['--registration-auth=badge'], env: { BADGE: 'badge-of-c1' } })
  const admin = plane.client()
  await eventually(
    async () => {
      const cluster = await admin.of(ManagedCluster).find('c1')
      for (const type of ['HubAcceptedManagedCluster', 'ManagedClusterJoined', 'ManagedClusterConditionAvailable'])
        assert.ok(cluster && isTrue(cluster, type), `${type}: ${JSON.stringify(cluster?.status?.conditions)}`)
    },
    { timeoutMs: 180_000 },
  )
  const secret = decoded(await admin.of(Secret, 'open-cluster-management-agent').get('hub-kubeconfig-secret'))!
  assert.equal(secret['badge'], 'badge-of-c1')
  assert.match(secret['kubeconfig']!, /tokenFile: badge/)
  assert.deepEqual((await admin.of(CertificateSigningRequest).list()).items, [])
})
