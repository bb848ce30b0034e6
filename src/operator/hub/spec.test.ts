import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { programPath } from '../../../testkit/program.ts'
import { kubeconfigText } from '../../kube/index.ts'
import { hubGates, readHubSpec } from './spec.ts'

const supported = { image: 'lanyard:1', drivers: ['csr', 'awsirsa'] }

test('R1.66 the gates that can be set are those that the hub knows', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'lanyard-'))
  const kubeconfig = join(folder, 'kubeconfig')
  // It asks nobody: gates are read before.
  await writeFile(
    kubeconfig,
    await kubeconfigText({ cluster: 'c', server: 'https://127.0.0.1:1', user: { token: 't' } }),
  )
  const asked = promisify(execFile)(programPath('lanyard'), [
    'hub',
    '--feature-gates=Nope=true',
    `--kubeconfig=${kubeconfig}`,
  ])
  const { stderr } = (await asked.catch((error: unknown) => error)) as { stderr: string }
  await rm(folder, { recursive: true })
  const named = /there are ([\w, ]+)/.exec(stderr)?.[1]?.split(', ')
  const known = named?.map((name) => name.trim().toLowerCase())
  const settable = Object.entries(hubGates).flatMap(([name, rule]) => (rule === 'set' ? [name.toLowerCase()] : []))
  assert.deepEqual(known?.toSorted(), settable.toSorted(), stderr)
})

test('R1.66 drivers and whom they let in without a person become flags; an unknown driver is refused', () => {
  const spec = {
    registrationConfiguration: {
      registrationDrivers: [
        { authType: 'csr' as const, csr: { autoApprovedIdentities: ['u'] } },
        {
          authType: 'awsirsa' as const,
          awsirsa: {
            hubClusterArn: 'arn:aws:eks:us-west-2:123456789012:cluster/hub',
            autoApprovedIdentities: ['arn:aws:eks:.*:1+:.*', 'x{1,2}'],
            tags: ['a=b', 'c=d'],
          },
        },
      ],
      featureGates: [{ feature: 'ManagedClusterAutoApproval', mode: 'Enable' as const }],
    },
  }
  assert.deepEqual(readHubSpec(spec, supported).flags, [
    '--registration-drivers=csr,awsirsa',
    '--hub-cluster-arn=arn:aws:eks:us-west-2:123456789012:cluster/hub',
    '--auto-approved-arn-patterns=arn:aws:eks:.*:1+:.*',
    '--aws-resource-tags=a=b,c=d',
    '--auto-approved-csr-users=u',
    '--feature-gates=ManagedClusterAutoApproval=true',
  ])
  assert.match(readHubSpec(spec, { ...supported, drivers: ['csr'] }).refused.join(), /awsirsa: this version knows csr/)
})

test('R1.66 an empty spec is a hub with certificates, and every field of it has its effect', () => {
  assert.deepEqual(readHubSpec({}, supported), {
    flags: ['--registration-drivers=csr'],
    ignored: [],
    refused: [],
    badGates: [],
  })
})
