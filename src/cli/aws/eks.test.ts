/** What clusters on EKS need: a token for a kubeconfig, and the IAM roles that have to be there first; against the local AWS. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { awsAccount } from '../../../testkit/aws-account.ts'
import { performCommands } from '../../../testkit/aws-commands.ts'
import { trusting } from '../../../testkit/identity-hub.ts'
import { runCli, startLocalAws, type CliResult, type LocalAws } from '../../../testkit/index.ts'
import { awsClient, type AwsClient } from '../../aws/index.ts'

const hubArn = 'arn:aws:eks:us-west-2:111111111111:cluster/hub'
const managedArn = 'arn:aws:eks:eu-west-1:222222222222:cluster/c1'
const issuer = 'oidc.eks.eu-west-1.amazonaws.com/id/ABC'

let local: LocalAws
let aws: AwsClient
before(async () => {
  local = await startLocalAws()
  aws = awsClient({ endpoints: { all: local.endpoint } })
})
after(async () => {
  aws.close()
  await local.stop()
})

const lanyard = (line: string, account = '222222222222', more: NodeJS.ProcessEnv = {}): Promise<CliResult> =>
  runCli(line.split(' '), {
    program: 'lanyard',
    env: {
      AWS_ENDPOINT_URL: local.endpoint,
      AWS_ACCESS_KEY_ID: account, // the root user of the account
      AWS_SECRET_ACCESS_KEY: 'any',
      AWS_EC2_METADATA_DISABLED: 'true',
      ...more,
    },
  })
const ok = async (...args: Parameters<typeof lanyard>): Promise<CliResult> => {
  const result = await lanyard(...args)
  assert.equal(result.code, 0, `${args[0]}\n${result.err}${result.out}`)
  return result
}
const refused = async (code: number, ...args: Parameters<typeof lanyard>): Promise<string> => {
  const result = await lanyard(...args)
  assert.equal(result.code, code, `${args[0]}\n${result.err}${result.out}`)
  assert.equal(result.out, '')
  return result.err
}

interface ExecCredential {
  apiVersion: string
  kind: string
  status: { token: string; expirationTimestamp: string }
}

/** Whom the token speaks for: it is an address that STS answers. */
const askedWith = async (token: string): Promise<string> => {
  const url = new URL(Buffer.from(token.replace('k8s-aws-v1.', ''), 'base64url').toString())
  const http = process.getBuiltinModule('node:http')
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const headers = { host: url.host, 'x-k8s-aws-id': 'hub' }
  http
    .get(new URL(`${url.pathname}${url.search}`, local.endpoint), { headers }, (answer) => {
      let body = ''
      answer.on('data', (chunk: Buffer) => (body += chunk.toString()))
      answer.on('end', () => resolve(body))
    })
    .on('error', reject)
  return promise
}

test('eks-token answers a kubeconfig with a token that STS knows, of oneself or of a role', async () => {
  const account = awsAccount(aws, '222222222222')
  const role = await account.role('admin', trusting('arn:aws:iam::222222222222:root'))
  const exec = JSON.stringify({ kind: 'ExecCredential', apiVersion: 'client.authentication.k8s.io/v1', spec: {} })
  const own = await ok('eks-token --cluster-name hub --region us-west-2', '222222222222', {
    KUBERNETES_EXEC_INFO: exec,
  })
  const { apiVersion, kind, status } = JSON.parse(own.out) as ExecCredential
  assert.deepEqual([kind, apiVersion], ['ExecCredential', 'client.authentication.k8s.io/v1'])
  assert.ok(Date.parse(status.expirationTimestamp) > Date.now())
  assert.match(await askedWith(status.token), /222222222222:root/)
  assert.equal(own.err, '')
  const more = { AWS_REGION: 'us-west-2' }
  const assumed = await ok(`eks-token --cluster-id hub --role-arn ${role}`, '222222222222', more)
  assert.match(await askedWith((JSON.parse(assumed.out) as ExecCredential).status.token), /assumed-role\/admin\//)

  assert.match(await refused(2, 'eks-token'), /--cluster-name is missing/)
  assert.match(
    await refused(1, 'eks-token --cluster-name hub'),
    /region of hub is not known\n {2}add --region, or set AWS_REGION/,
  )
  assert.match(await refused(1, 'eks-token --cluster-name hub --region nowhere!'), /is not a region/)
  const stranger = 'arn:aws:iam::333333333333:role/none'
  assert.match(
    await refused(1, `eks-token --cluster-name hub --role-arn ${stranger}`, '222222222222', more),
    /Error: .*none/,
  )
})

test('R1.29 prerequisites prints the roles in four forms, and --verify names what is missing before and finds nothing after', async () => {
  for (const [account, line] of [
    [
      '222222222222',
      `aws prerequisites managed --hub-cluster-arn ${hubArn} --managed-cluster-arn ${managedArn} --oidc-provider https://${issuer}`,
    ],
    ['111111111111', `aws prerequisites hub --hub-cluster-arn ${hubArn} --oidc-provider ${issuer} --access-entries`],
  ] as const) {
    const json = JSON.parse((await ok(line)).out) as { role: string; trust: { Statement: unknown[] } }
    assert.match(json.role, new RegExp(`^arn:aws:iam::${account}:role/`))
    assert.match(JSON.stringify(json.trust), new RegExp(issuer))
    const name = json.role.split('/')[1]!
    assert.match((await ok(`${line} -o terraform`)).out, new RegExp(`^resource "aws_iam_role" "${name}"`))
    const stack = JSON.parse((await ok(`${line} -o cloudformation`)).out) as {
      Resources: { Role: { Properties: { RoleName: string } } }
    }
    assert.equal(stack.Resources.Role.Properties.RoleName, name)

    const missing = await lanyard(`${line} --verify`, account)
    assert.equal(missing.code, 1)
    assert.equal(missing.out, `✘ account ${account} has no role ${name}\n`)
    assert.match(missing.err, /-o commands/)
    await performCommands(awsAccount(aws, account), (await ok(`${line} -o commands`)).out)
    assert.equal(
      (await ok(`${line} --verify`, account)).out,
      `✔ role ${name} of account ${account} is as it should be\n`,
    )
    assert.match(
      await refused(1, `${line} --verify`, '333333333333'),
      new RegExp(
        `belongs into account ${account}, and you are arn:aws:iam::333333333333:root .*\\n {2}use credentials of account ${account}`,
      ),
    )
  }
  const other = `aws prerequisites managed --hub-cluster-arn ${hubArn} --managed-cluster-arn ${managedArn} --oidc-provider other.example.com --verify`
  const differs = await lanyard(other)
  assert.equal(differs.code, 1)
  assert.match(differs.out, /^✘ the trust policy of ocm-managed-cluster-\w+ has no statement .*other.example.com/)
})

test('without --oidc-provider EKS is asked, and the cluster must be of the account that the ARN names', async () => {
  const account = awsAccount(aws, '222222222222')
  const roleArn = await account.role('eks', trusting('arn:aws:iam::222222222222:root'))
  const { cluster } = await aws.json<{ cluster: { identity: { oidc: { issuer: string } } } }>({
    service: 'eks',
    region: 'eu-west-1',
    credentials: account.root,
    operation: 'CreateCluster',
    method: 'POST',
    path: '/clusters',
    body: { name: 'c1', roleArn, resourcesVpcConfig: { subnetIds: ['subnet-1', 'subnet-2'] } },
  })
  const line = `aws prerequisites managed --hub-cluster-arn ${hubArn} --managed-cluster-arn`
  const json = JSON.parse((await ok(`${line} ${managedArn}`)).out) as {
    trust: { Statement: { Principal: { Federated: string } }[] }
  }
  const known = cluster.identity.oidc.issuer.replace('https://', '')
  assert.equal(json.trust.Statement[0]!.Principal.Federated, `arn:aws:iam::222222222222:oidc-provider/${known}`)
  assert.match(
    await refused(1, `${line} ${managedArn.replace('222222222222', '444444444444')}`),
    /does not say what the OIDC issuer of cluster c1 is\n {2}give it with --oidc-provider: aws eks describe-cluster --name c1 --region eu-west-1/,
  )
  assert.match(
    await refused(1, `${line} ${managedArn.replace('/c1', '/c2')}`),
    /EKS was asked for the OIDC issuer of cluster c2: .*\n {2}give it/,
  )
})

test('bad input: the flag that is wrong is named', async () => {
  const managed = 'aws prerequisites managed'
  assert.match(await refused(2, managed), /--hub-cluster-arn is missing/)
  assert.match(await refused(2, `${managed} --eks-hub-cluster-arn ${hubArn}`), /--managed-cluster-arn is missing/)
  assert.match(await refused(2, `${managed} --hub-cluster-arn hub`), /--hub-cluster-arn: /)
  const both = `${managed} --hub-cluster-arn ${hubArn} --managed-cluster-arn ${managedArn}`
  assert.match(await refused(2, `${both} --oidc-provider http://x`), /is not an issuer such as https:/)
  assert.match(
    await refused(2, `${both} --oidc-provider ${issuer} -o yaml`),
    /--output takes json, commands, terraform, cloudformation/,
  )
  const long = `arn:aws:eks:us-west-2:111111111111:cluster/${'h'.repeat(40)}`
  assert.match(
    await refused(1, `aws prerequisites hub --hub-cluster-arn ${long} --oidc-provider ${issuer}`),
    /IAM allows 64\n {2}automatic approval needs a hub with a name of at most 31/,
  )
})
