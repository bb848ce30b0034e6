/** What goes wrong in AWS: each fault is planted on local EKS, found by name, and healed by the command that doctor prints. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { awsToolsEnvironment } from '../../../testkit/eks/aws-tools.ts'
import {
  eksCluster,
  startLocalEks,
  startManagedPlane,
  type LocalEks,
  type ManagedEks,
} from '../../../testkit/eks/index.ts'
import {
  eventually,
  runCli,
  runProgram,
  sendTo,
  startAgent,
  startHub,
  type CliResult,
  type ControlPlane,
} from '../../../testkit/index.ts'
import type { Stuck } from '../../../testkit/doctor-scene.ts'
import { ClusterManager, ManagedCluster } from '../../api/index.ts'
import { hubRoleArn, hubRoleName, managedRoleArn, managedRoleName, pathOf } from '../../aws/index.ts'
import { ServiceAccount } from '../../kube/index.ts'
import { isTrue, systemClock } from '../../runtime/index.ts'
import type { Fault, StepResult } from './index.ts'

const [hubAccount, account] = ['111111111111', '222222222222']
const limit = { timeoutMs: 180_000 }

let eks: LocalEks
let plane: ControlPlane
let managed: ManagedEks
before(async () => {
  eks = await startLocalEks({ access: 'access-entries', plane: { audit: false } })
  plane = await startManagedPlane(eksCluster('m1', account))
  managed = await eks.managed('m1', { account, plane })
  const approval = ['--feature-gates=ManagedClusterAutoApproval=true', `--auto-approved-arn-patterns=${managed.arn}`]
  await startHub(eks.hub, { args: [...eks.hubArgs, ...approval], env: await eks.hubEnvironment() })
  await sendTo(plane, eks.hub)
  await startAgent(plane, 'c1', { args: managed.args, env: await managed.environment(), wait: true })
  const awsirsa = { hubClusterArn: eks.hubArn }
  await eks.hub
    .client()
    .of(ClusterManager)
    .create({
      metadata: { name: 'cluster-manager' },
      spec: { registrationConfiguration: { registrationDrivers: [{ authType: 'awsirsa', awsirsa }] } },
    })
  await annotate(managedRoleArn(managed.pair))
})
after(async () => {
  await plane?.stop()
  await eks?.stop()
})

const annotate = (role: string | null): Promise<unknown> =>
  plane
    .client()
    .of(ServiceAccount, 'open-cluster-management-agent')
    .patch('klusterlet-work-sa', { merge: { metadata: { annotations: { 'eks.amazonaws.com/role-arn': role } } } })

/** Asks as somebody with the credentials of an account, or with none. */
const doctor = async (as: string | undefined, clock = systemClock): Promise<CliResult> => {
  const words = [
    'doctor',
    'c1',
    '--kubeconfig',
    eks.hub.kubeconfig,
    '--managed-kubeconfig',
    plane.kubeconfig,
    '-o',
    'json',
  ]
  const env = { AWS_ENDPOINT_URL: eks.endpoint, AWS_EC2_METADATA_DISABLED: 'true' }
  if (as) return runCli(words, { env: { ...env, AWS_ACCESS_KEY_ID: as, AWS_SECRET_ACCESS_KEY: 'any' }, clock })
  // Where it finds no keys it asks AWS's SDK, which looks at the environment of its process.
  const { code, stdout, stderr } = await runProgram('clusteradm', words, { plane, env: { ...env, HOME: plane.folder } })
  return { code, out: stdout, err: stderr }
}

const aboutAws = async (...asked: Parameters<typeof doctor>): Promise<StepResult[]> => {
  const { out, err } = await doctor(...asked)
  assert.ok(out, err)
  const { clusters } = JSON.parse(out) as { clusters: { steps: StepResult[] }[] }
  return clusters[0]!.steps.filter(({ step }) => step.includes('AWS'))
}
const finds = async (fault: Fault, ...asked: Parameters<typeof doctor>): Promise<Stuck> => {
  const steps = await aboutAws(...asked)
  const found = steps.find((step): step is Stuck => step.state === 'stuck' && step.fault === fault)
  return found ?? assert.fail(`${fault} is not among ${JSON.stringify(steps)}`)
}
const isWell = (as?: string): Promise<void> =>
  eventually(async () => {
    const steps = await aboutAws(as)
    assert.deepEqual(
      steps.map(({ state }) => state),
      ['ok', 'ok', 'ok'],
      JSON.stringify(steps),
    )
  }, limit)

/** As the person does it, with credentials of the account that the fault is about. */
const heals = async ({ command }: Stuck, as: string): Promise<void> => {
  const env = await awsToolsEnvironment(eks, managed, plane)
  const keys = {
    AWS_ACCESS_KEY_ID: as,
    AWS_SECRET_ACCESS_KEY: 'any',
    AWS_ROLE_ARN: '',
    AWS_WEB_IDENTITY_TOKEN_FILE: '',
  }
  await promisify(execFile)('/bin/sh', ['-e', '-c', command], { env: { ...env, ...keys } })
  await isWell(as)
}

test('R1.64 nothing of AWS is stuck with a cluster that has joined, whoever asks', async () => {
  await isWell()
  await isWell(account)
  assert.ok(isTrue(await eks.hub.client().of(ManagedCluster).get('c1'), 'ManagedClusterJoined'))
})

test('R1.64 aws-no-credentials: the service account of the agent names no role', async () => {
  await annotate(null)
  await heals(await finds('aws-no-credentials', undefined), account)
})

test('R1.64 aws-wrong-account: it names a role of another account', async () => {
  await annotate(managedRoleArn(managed.pair).replace(account, '333333333333'))
  const found = await finds('aws-wrong-account', undefined)
  assert.match(found.why, /which is in account 333333333333; cluster c1 is in account 222222222222/)
  await heals(found, account)
})

test('R1.64 aws-role-missing: the role of the agent is not there; without credentials of its account doctor says that it cannot know why', async () => {
  const RoleName = managedRoleName(managed.pair)
  const { iam } = eks.account(account)
  await iam('DeleteRolePolicy', { RoleName, PolicyName: 'may' })
  await iam('DeleteRole', { RoleName })
  for (const as of [undefined, hubAccount])
    assert.match((await finds('aws-role-refused', as)).why, /With credentials of account 222222222222 doctor says why$/)
  await heals(await finds('aws-role-missing', account), account)
})

test('R1.64 aws-role-missing: the role on the hub is not there, and the hub makes it again', async () => {
  const RoleName = hubRoleName(managed.pair)
  await eks.hubAccount.iam('DeleteRolePolicy', { RoleName, PolicyName: 'ocm-hub-access' })
  await eks.hubAccount.iam('DeleteRole', { RoleName })
  await heals(await finds('aws-role-missing', hubAccount), hubAccount)
})

test('R1.64 aws-trust-mismatch: neither role may trust somebody else', async () => {
  const Statement = [{ Effect: 'Allow', Principal: { AWS: '999999999999' }, Action: 'sts:AssumeRole' }]
  const PolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement })
  for (const [id, RoleName] of [
    [account, managedRoleName(managed.pair)],
    [hubAccount, hubRoleName(managed.pair)],
  ] as const) {
    await eks.account(id).iam('UpdateAssumeRolePolicy', { RoleName, PolicyDocument })
    await heals(await finds('aws-trust-mismatch', id), id)
  }
})

test('R1.64 aws-tag-mismatch: the role of the agent has the tags of another cluster', async () => {
  const RoleName = managedRoleName(managed.pair)
  await eks.account(account).iam('TagRole', { RoleName, Tags: [{ Key: 'managed_cluster_name', Value: 'other' }] })
  const found = await finds('aws-tag-mismatch', account)
  assert.match(found.why, /has the tag managed_cluster_name=other and not managed_cluster_name=m1/)
  await heals(found, account)
})

test('R1.64 aws-mapping-missing: EKS does not know whom the role stands for', async () => {
  const path = pathOf('clusters', 'hub', 'access-entries', hubRoleArn(managed.pair))
  const { region } = eks.hubCluster
  const credentials = eks.hubAccount.root
  await eks.client.json({ service: 'eks', operation: 'DeleteAccessEntry', method: 'DELETE', path, region, credentials })
  await eventually(() => finds('aws-mapping-missing', undefined), limit) // the API server remembers tokens for a second
  await heals(await finds('aws-mapping-missing', hubAccount), hubAccount)
})

test('R1.64 aws-clock-skew: the managed cluster lives in another time than this machine', async () => {
  const late = { ...systemClock, now: () => Date.now() + 12 * 60_000 }
  const found = await finds('aws-clock-skew', account, late)
  assert.match(found.why, /is 12 minutes behind the one of this machine/)
  assert.equal(found.command, 'timedatectl set-ntp true')
})
