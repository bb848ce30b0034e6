/** AWS identities from the command line, on a real API server and the local AWS, beside controllers that run. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  runCli,
  startControlPlane,
  startLocalAws,
  type CliResult,
  type ControlPlane,
  type LocalAws,
} from '../../../testkit/index.ts'
import {
  controllerIdentity,
  createAwsCluster,
  createKeys,
  hubNamespace,
  isReady,
  managementAccount,
  namespace,
  roleReference,
  runIdentities,
  stands,
  staticReference,
  trusting,
} from '../../../testkit/identity-hub.ts'
import {
  AWSClusterControllerIdentity,
  AWSClusterRoleIdentity,
  AWSClusterStaticIdentity,
  AWSServiceAccountIdentity,
  crds,
  installCrds,
} from '../../api/index.ts'
import type { Credentials } from '../../aws/index.ts'
import { Secret, ServiceAccount } from '../../kube/index.ts'
import type { Explanation } from './explanation.ts'
import type { IdentityFacts } from './identity-tree.ts'

let plane: ControlPlane
let local: LocalAws
let beforeAnything: CliResult
before(async () => {
  ;[plane, local] = await Promise.all([startControlPlane({ audit: false }), startLocalAws()])
  beforeAnything = await lanyard('aws identities')
  await installCrds(plane.client(), crds({ conversion: 'none' }))
})
after(() => Promise.all([plane.stop(), local.stop()]))

const envWith = ({ accessKeyId, secretAccessKey }: Credentials) => ({
  AWS_ENDPOINT_URL: local.endpoint,
  AWS_ACCESS_KEY_ID: accessKeyId,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
  AWS_REGION: 'eu-west-1',
  AWS_EC2_METADATA_DISABLED: 'true',
})

const lanyard = (line: string, env: NodeJS.ProcessEnv = {}): Promise<CliResult> =>
  runCli([...line.split(' '), '--kubeconfig', plane.kubeconfig], { program: 'lanyard', env })

test('the chains are shown as a tree and as pictures; whoami and explain go through them and say which link fails and what to change', async (t) => {
  const { client, account, controllerArn } = await runIdentities(t, plane, local)
  const me = await account(managementAccount).user('me', {
    Version: '2012-10-17',
    Statement: [{ Effect: 'Allow', Action: ['sts:AssumeRole', 'sts:TagSession'], Resource: '*' }],
  })
  const env = envWith(me)
  const mine = `arn:aws:iam::${managementAccount}:user/me`
  const run = (line: string) => lanyard(`${line} --hub-namespace ${hubNamespace}`, env)
  const ok = async (line: string): Promise<CliResult> => {
    const result = await run(line)
    assert.equal(result.code, 0, `${line}\n${result.err}${result.out}`)
    return result
  }

  // The hub and the person who types may both begin the chain of `prod`; nobody may assume `locked`.
  const both = { AWS: [controllerArn, mine] } as never
  const trust = (Principal: never) => ({
    Version: '2012-10-17' as const,
    Statement: [{ Effect: 'Allow' as const, Principal, Action: ['sts:AssumeRole', 'sts:TagSession'] }],
  })
  const prod = await account('222222222222').role('prod', trust(both))
  const locked = await account('333333333333').role('locked', trusting('arn:aws:iam::999999999999:root'))
  const stored = await account('444444444444').user('stored')
  await namespace(client, 'team-a')
  await createKeys(client, `${hubNamespace}/stored`, stored)
  await client.of(AWSClusterStaticIdentity).create({
    metadata: { name: 'stored' },
    spec: { secretRef: { namespace: hubNamespace, name: 'stored' }, allowedNamespaces: { list: ['team-a'] } },
  })
  const role = (name: string, roleARN: string, sourceIdentityRef: object, allowed: string[] = ['team-a']) =>
    client.of(AWSClusterRoleIdentity).create({
      metadata: { name },
      spec: { roleARN, sourceIdentityRef: sourceIdentityRef as never, allowedNamespaces: { list: allowed } },
    })
  await role('prod', prod, controllerIdentity)
  await role('locked', locked, roleReference('prod'))
  await role('lost', prod, staticReference('nowhere'))
  await createAwsCluster(client, 'team-a/prod', { identity: roleReference('prod') })
  await createAwsCluster(client, 'team-a/locked', { identity: roleReference('locked') })
  await createAwsCluster(client, 'team-a/keys', { identity: staticReference('stored') })
  await createAwsCluster(client, 'team-b/spy', { identity: roleReference('prod') })
  await stands(client, 'team-a/prod', isReady('222222222222'))
  await stands(client, 'team-a/keys', isReady('444444444444'))
  await stands(client, 'team-a/locked', /^True\/PrincipalUsageAllowed False\//)
  await stands(client, 'team-b/spy', /^False\/PrincipalUsageUnauthorized/)

  const tree = (await ok('aws identities')).out
  assert.match(
    tree,
    /^AWSClusterControllerIdentity default\n│ {4}may be used by all namespaces\n└─ AWSClusterRoleIdentity prod, arn:aws:iam::222222222222:role\/prod, account 222222222222\n {3}│ {4}may be used by namespaces team-a\n/,
  )
  assert.match(tree, /\n {3}├─ AWSCluster team-a\/prod, account 222222222222\n/)
  assert.match(
    tree,
    /\n {3}├─ AWSCluster team-b\/spy\n {3}│ +problem: PrincipalUsageUnauthorized: .*add team-b to spec.allowedNamespaces\n/,
  )
  assert.match(
    tree,
    /\n {3}└─ AWSClusterRoleIdentity locked, .*\n(?:.*\n)? {6}└─ AWSCluster team-a\/locked\n +problem: PrincipalCredentialRetrievalFailed: .*role\/locked/,
  )
  assert.match(
    tree,
    /\nAWSClusterStaticIdentity stored, access key in secret lanyard-hub\/stored, account 444444444444\n/,
  )
  assert.match(
    tree,
    /\nAWSClusterRoleIdentity lost, .*\n.*\n {5}problem: AWSClusterStaticIdentity nowhere, which it stands on, does not exist\n/,
  )
  assert.doesNotMatch(tree, /until/)

  const checked = JSON.parse((await ok('aws identities --check -o json')).out) as IdentityFacts[]
  const of = (name: string) => checked.find((one) => one.name === name)!
  assert.equal(of('default').arn, mine)
  assert.match(of('prod').arn!, /assumed-role\/prod\//)
  assert.ok(Date.parse(of('prod').expires!) > Date.now())
  assert.equal(of('stored').account, '444444444444')
  assert.equal(of('stored').expires, undefined)
  assert.match(of('locked').problem, /role arn:aws:iam::333333333333:role\/locked.*trust/i)
  assert.doesNotMatch(JSON.stringify(checked), new RegExp(stored.secretAccessKey.replaceAll(/[^\w]/g, '.')))
  const dot = (await ok('aws identities -o dot')).out
  assert.match(dot, /label="account 222222222222"/)
  assert.match(dot, /\[label="AWSCluster\\nteam-b\/spy" shape=ellipse color="#c0392b"\]/)
  assert.match(dot, /label="AWSClusterStaticIdentity nowhere\\n\(missing\)" color="#c0392b"/)
  assert.match((await ok('aws identities -o mermaid')).out, /^flowchart LR\n[^]*-->\|"assumes"\|/)

  const who = await ok('aws whoami --cluster team-a/prod')
  assert.match(
    who.out,
    /account {3}222222222222\narn {7}arn:aws:sts::222222222222:assumed-role\/prod\/.*\nregion {4}eu-west-1\nexpires {3}20/,
  )
  assert.match(who.err, /yours are used in their place/)
  const keys = await ok('aws whoami --cluster team-a/keys -o json')
  assert.deepEqual(JSON.parse(keys.out), {
    cluster: 'team-a/keys',
    account: '444444444444',
    arn: 'arn:aws:iam::444444444444:user/stored',
    region: 'eu-west-1',
    expires: 'never',
    identity: 'AWSClusterStaticIdentity stored',
    chain: 'AWSClusterStaticIdentity stored',
  })
  assert.equal(keys.err, '')
  assert.equal((await ok('aws whoami')).out, `account   ${managementAccount}\narn       ${mine}\n`)
  const denied = await run('aws whoami --cluster team-b/spy')
  assert.equal(denied.code, 1)
  assert.match(
    denied.err,
    /Error: AWSCluster team-b\/spy: .*not permitted.*\n {2}the whole chain: lanyard aws explain team-b\/spy/,
  )
  const shut = await run('aws whoami --cluster team-a/locked')
  assert.equal(shut.code, 1)
  assert.match(shut.err, /Error: role arn:aws:iam::333333333333:role\/locked: .*\n {2}.*trust/i)

  const fine = await ok('aws explain team-a/prod')
  assert.match(
    fine.out,
    /✔ AWSClusterRoleIdentity prod: allows namespaces team-a\n {2}✔ AWSClusterControllerIdentity default: allows all namespaces\n/,
  )
  assert.match(
    fine.out,
    /✔ the controller's own credentials: is arn:aws:iam::111111111111:user\/me in account 111111111111 \(yours, .*\)\n/,
  )
  assert.match(
    fine.out,
    /✔ role arn:aws:iam::222222222222:role\/prod: is arn.* until .*\n {2}✔ account 222222222222 of the cluster: is the one that is reached\nAll is well.\n$/,
  )

  const iam = await run('aws explain team-a/locked -o json')
  assert.equal(iam.code, 1)
  const said = JSON.parse(iam.out) as Explanation
  assert.deepEqual(
    said.kubernetes.map(({ state }) => state),
    ['ok', 'ok', 'ok'],
  )
  assert.deepEqual(
    said.aws.map(({ state }) => state),
    ['ok', 'ok', 'fails'],
  )
  assert.equal(said.aws[2]!.where, 'IAM')
  assert.match(said.aws[2]!.next!, /role\/locked.*trust|trust.*role\/locked/i)
  assert.match(said.hub!, /^PrincipalCredentialRetrievalFailed/)
  assert.equal(said.works, false)

  const kubernetes = await run('aws explain team-b/spy')
  assert.equal(kubernetes.code, 1)
  assert.match(
    kubernetes.out,
    /✘ AWSClusterRoleIdentity prod: PrincipalUsageUnauthorized: .*\n {6}change in Kubernetes: ask whoever manages .* to add team-b/,
  )
  assert.doesNotMatch(kubernetes.out, /In AWS/, 'credentials of a refused chain are not asked for')
  assert.match(kubernetes.out, /It does not work.\n$/)

  await client.of(Secret, hubNamespace).delete('stored')
  await stands(client, 'team-a/keys', /^True\/PrincipalUsageAllowed False\//)
  const gone = await run('aws explain team-a/keys')
  assert.equal(gone.code, 1)
  assert.match(
    gone.out,
    /✘ the access key in secret lanyard-hub\/stored: .*does not exist\n {6}change in Kubernetes: create it/,
  )
  const offline = await run('aws explain team-a/keys --no-aws')
  assert.match(
    offline.out,
    /· the access key in secret lanyard-hub\/stored: not tried\nThe hub says:\n {2}✘ PrincipalCredentialRetrievalFailed/,
  )
  assert.deepEqual(
    (await client.of(ServiceAccount, 'team-a').list()).items.map(({ metadata }) => metadata.name),
    ['default'],
  )
})

test('R3.39 the printed trust policies are those with which AWS lets the hub in, and nobody else', async (t) => {
  const { client, account, controllerArn } = await runIdentities(t, plane, local)
  const owner = account('555555555555')
  const nobody = trusting('arn:aws:iam::999999999999:root')
  const roleARN = await owner.role('tenant', nobody)
  const inner = await account('666666666666').role('inner', nobody)
  const print = async (line: string): Promise<string> => {
    const { code, out, err } = await lanyard(`aws trust-policy ${line}`)
    assert.equal(code, 0, err)
    assert.match(
      err,
      /^For role (tenant|inner) in account \d+: aws iam update-assume-role-policy --role-name \w+ --policy-document/,
    )
    return out
  }
  const trust = (of: typeof owner, RoleName: string, PolicyDocument: string) =>
    of.iam('UpdateAssumeRolePolicy', { RoleName, PolicyDocument })

  // By token: the issuer is the API server's own.
  const issuer = 'https://kubernetes.default.svc.cluster.local'
  const provider = { Url: issuer, ClientIDList: ['sts.amazonaws.com'], ThumbprintList: ['a'.repeat(40)] }
  await owner.iam('CreateOpenIDConnectProvider', provider)
  const token = { kind: 'AWSServiceAccountIdentity', name: 'builder' } as const
  for (const space of ['tenant', 'thief']) {
    await namespace(client, space)
    await client
      .of(AWSServiceAccountIdentity, space)
      .create({ metadata: { namespace: space, name: 'builder' }, spec: { roleARN } })
    await createAwsCluster(client, `${space}/own`, { identity: token })
  }
  await stands(client, 'tenant/own', denied)
  const policy = JSON.parse(await print('tenant/builder')) as { Statement: { Condition: { StringEquals: object } }[] }
  const host = new URL(issuer).host
  const { [`${host}:aud`]: audience, ...subject } = policy.Statement[0]!.Condition.StringEquals as Record<
    string,
    string
  >
  assert.equal(audience, 'sts.amazonaws.com')
  // API servers write the audience as a list, which AWS compares item by item and the local AWS not at all.
  policy.Statement[0]!.Condition.StringEquals = subject
  await trust(owner, 'tenant', JSON.stringify(policy))
  await stands(client, 'tenant/own', isReady('555555555555'))
  await stands(client, 'thief/own', denied)

  // By a role: with its external ID, and session tags.
  const sourceIdentityRef = controllerIdentity as never
  await client.of(AWSClusterRoleIdentity).create({
    metadata: { name: 'inner' },
    spec: { roleARN: inner, sourceIdentityRef, allowedNamespaces: {}, externalID: 'agreed', tags: { team: 'a' } },
  })
  await client
    .of(AWSClusterControllerIdentity)
    .create({ metadata: { name: 'default' }, spec: { allowedNamespaces: {} } })
  await createAwsCluster(client, 'tenant/two', { identity: roleReference('inner') })
  await stands(client, 'tenant/two', denied)
  const unknown = await lanyard('aws trust-policy inner')
  assert.match(
    unknown.err,
    /stands on AWSClusterControllerIdentity default, whose ARN only AWS knows\n {2}give it with --source-arn/,
  )
  await trust(account('666666666666'), 'inner', await print(`inner --source-arn ${controllerArn}`))
  await stands(client, 'tenant/two', isReady('666666666666'))
  const missing = await lanyard('aws trust-policy nobody')
  assert.match(missing.err, /there is no AWSClusterRoleIdentity nobody/)
})

const denied = 'True/PrincipalUsageAllowed False/PrincipalCredentialRetrievalFailed -'

test('bad input: one line that says what to write, and a cluster that knows no AWS', async () => {
  const refused = async (code: number, line: string): Promise<string> => {
    const { code: got, out, err } = await lanyard(line)
    assert.equal(got, code, err)
    assert.equal(out, '')
    return err
  }
  assert.match(await refused(2, 'aws explain'), /CLUSTER is missing: an AWSCluster/)
  assert.match(await refused(2, 'aws explain prod'), /"prod" is no AWSCluster; write NAMESPACE\/NAME/)
  assert.match(await refused(1, 'aws explain team-a/nope'), /there is no AWSCluster team-a\/nope\n {2}there are none/)
  assert.match(await refused(2, 'aws whoami --cluster prod'), /--cluster takes NAMESPACE\/NAME/)
  assert.match(await refused(2, 'aws identities -o tree'), /--output takes table, json, yaml, dot, mermaid/)
  assert.equal((await lanyard('aws identities')).out, 'There are no AWS identities.\n')
  assert.equal(beforeAnything.code, 1)
  assert.match(
    beforeAnything.err,
    /knows no aws\w+\.infrastructure.cluster.x-k8s.io\n {2}choose the management cluster .*AWSIdentities=true/,
  )
})
