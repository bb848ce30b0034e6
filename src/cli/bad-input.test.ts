/** What a person gets wrong: one clear line and a way out, an exit code that is not zero, and nothing changed anywhere. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { crds, installCrds, label, ManagedCluster } from '../api/index.ts'
import { CertificateSigningRequest, type Client } from '../kube/index.ts'
import { createAuthority, createRequest, newKey } from '../runtime/pki/index.ts'
import { runCli, startControlPlane, type CliResult, type ControlPlane } from '../../testkit/index.ts'

let hub: ControlPlane
let plain: ControlPlane
let admin: Client
let token: string
let hash: string

before(async () => {
  ;[hub, plain] = await Promise.all([startControlPlane(), startControlPlane()])
  admin = hub.client()
  await installCrds(admin, crds({ conversion: 'none' }))
  const { code, out, err } = await runCli(['init', '--force', '-o', 'json', '--kubeconfig', hub.kubeconfig], {
    program: 'setup',
  })
  assert.equal(code, 0, err)
  const ticket = JSON.parse(out) as { 'hub-token': string; 'ca-hash': string }
  token = ticket['hub-token']
  hash = ticket['ca-hash']
})
after(() => Promise.all([hub.stop(), plain.stop()]))

/** Runs a command that must fail, and change nothing on either cluster. */
const refused = async (
  code: number,
  args: readonly string[],
  options: Parameters<typeof runCli>[1] = {},
): Promise<string> => {
  const result: CliResult = await runCli(args, options)
  assert.equal(result.code, code, `${args.join(' ')}\n${result.err}${result.out}`)
  assert.equal(result.out, '')
  const errors = result.err.split('\n').filter((line) => line.startsWith('Error: '))
  assert.equal(errors.length, 1, result.err)
  for (const plane of [hub, plain]) assert.equal((await plane.requestsBy('clusteradm')).writes, 0)
  return result.err.slice(result.err.indexOf('Error: '))
}

const joining = (...more: string[]): string[] => [
  ...`join --kubeconfig ${plain.kubeconfig} --hub-apiserver ${hub.server} --cluster-name c1`.split(' '),
  ...more,
]

test('a kubeconfig that is missing, is none, or has no such context', async () => {
  assert.match(
    await refused(1, ['get', 'clusters']),
    /no kubeconfig was found .*; name one with --kubeconfig or \$KUBECONFIG/,
  )
  const file = join(plain.folder, 'not-a-kubeconfig')
  writeFileSync(file, 'kind: Pod\napiVersion: v1\n')
  assert.match(await refused(1, ['get', 'clusters', '--kubeconfig', file]), /it is a "Pod" of "v1", not a kubeconfig/)
  const wrong = ['get', 'clusters', '--kubeconfig', hub.kubeconfig, '--context', 'nope']
  assert.match(await refused(1, wrong), /there is no context "nope"; (did you mean|known:)/)
  const gone = join(plain.folder, 'gone')
  writeFileSync(
    gone,
    JSON.stringify({
      'current-context': 'x',
      clusters: [{ name: 'x', cluster: { server: 'https://127.0.0.1:1' } }],
      contexts: [{ name: 'x', context: { cluster: 'x' } }],
    }),
  )
  assert.match(
    await refused(1, ['get', 'clusters', '--kubeconfig', gone]),
    /nothing accepts connections there; check that the API server runs/,
  )
})

test('R1.16 a name that is not a DNS label is refused with one that would do', async () => {
  const args = [
    'join',
    '--hub-token',
    't',
    '--hub-apiserver',
    hub.server,
    '--cluster-name',
    'My_Cluster',
    '--kubeconfig',
    plain.kubeconfig,
  ]
  assert.match(await refused(2, args), /--cluster-name "My_Cluster" is not a DNS label: .*; for example my-cluster/)
  assert.match(
    await refused(2, ['accept', '--clusters', 'a.b', '--kubeconfig', hub.kubeconfig]),
    /--clusters "a.b" is not a DNS label/,
  )
})

test('join says which of its flags is missing', async () => {
  assert.match(await refused(2, ['join']), /--hub-apiserver is missing/)
  assert.match(
    await refused(2, ['join', '--hub-apiserver', 'http://hub', '--cluster-name', 'c1']),
    /"http:\/\/hub" is not an address such as https:/,
  )
  assert.match(
    await refused(2, joining()),
    /--hub-token is missing: get one on the hub with clusteradm get token; or use --hub-token-file/,
  )
  assert.match(
    await refused(2, joining('--hub-token', 't', '--ca-hash', 'sha256:1')),
    /--ca-hash takes sha256: and 64 hex digits/,
  )
  assert.match(
    await refused(2, joining('--hub-token', 't', '--ca-file', 'x', '--trust-on-first-use')),
    /say different things/,
  )
  assert.match(await refused(2, ['accept']), /--clusters is missing/)
})

test('R1.13 R1.14 aws-irsa asks for the ARNs by the names of their flags, and says which part is wrong', async () => {
  const irsa = joining('--hub-token', token, '--registration-auth', 'aws-irsa')
  assert.match(await refused(2, irsa), /--eks-hub-cluster-arn is missing/)
  const arn = 'arn:aws:eks:us-west-2:123456789012:cluster/hub'
  assert.match(await refused(2, [...irsa, '--eks-hub-cluster-arn', arn.replace('123456789012', '123')]), /account.*123/)
  assert.match(await refused(2, [...irsa, '--hub-cluster-arn', arn]), /--managed-cluster-arn is missing/)
  assert.match(
    await refused(2, joining('--hub-token', token, '--managed-cluster-arn', arn)),
    /needs --registration-auth aws-irsa/,
  )
  assert.match(
    await refused(2, ['init', '--registration-auth', 'aws-irsa', '--kubeconfig', plain.kubeconfig]),
    /--hub-cluster-arn is missing/,
  )
})

test('a token that is wrong, has expired or was cut', async () => {
  const withToken = (value: string) => joining('--hub-token', value, '--ca-hash', hash)
  assert.match(
    await refused(1, withToken('wrong')),
    /refuses the token: it is wrong, expired, or from another hub\n {2}get a new one/,
  )
  const payload = Buffer.from(JSON.stringify({ exp: 1_000_000_000 })).toString('base64url')
  assert.match(
    await refused(1, withToken(`e30.${payload}.x`)),
    /the token expired at 2001-09-09T01:46:40.000Z\n {2}get a new one on the hub: clusteradm get token/,
  )
  assert.match(await refused(2, withToken('a b')), /characters that no token has/)
  assert.match(
    await refused(1, joining('--hub-token-file', '/does/not/exist')),
    /--hub-token-file \/does\/not\/exist cannot be read: ENOENT/,
  )
})

test('the token stays with us until the hub is verified: no CA, a wrong hash, a wrong CA', async () => {
  const unknown = await refused(1, joining('--hub-token', token))
  assert.match(unknown, /nothing proves that https:\/\/127\S+ is the hub you mean: its CA is not known here\n/)
  assert.match(unknown, new RegExp(`--ca-hash ${hash}`))
  assert.match(
    await refused(1, joining('--hub-token', token, '--ca-hash', `sha256:${'0'.repeat(64)}`)),
    /shows another CA than --ca-hash says: sha256:/,
  )
  const other = join(plain.folder, 'other-ca.crt')
  writeFileSync(other, createAuthority({ commonName: 'another', validForMs: 3_600_000, now: new Date() }).cert)
  assert.match(
    await refused(1, joining('--hub-token', token, '--ca-file', other)),
    /is not from the CA that it should be \(the CA in .*other-ca.crt\)\n {2}check/,
  )
  writeFileSync(other, 'no certificate')
  assert.match(await refused(1, joining('--hub-token', token, '--ca-file', other)), /holds no certificate/)
  // Nobody on the hub has seen the token meanwhile.
  const account = 'system:serviceaccount:open-cluster-management:agent-registration-bootstrap'
  assert.equal((await hub.requestsBy({ user: account })).total, 0)
})

test('a person at a terminal is shown the hash and asked; no is no, and yes joins', async () => {
  const args = joining('--hub-token', token, '--dry-run')
  const no = await runCli(args, { tty: true, stdin: 'n\n', env: { NO_COLOR: '1' } })
  assert.equal(no.code, 1)
  assert.ok(no.err.includes(`It shows the CA ${hash}`))
  assert.match(no.err, /Is it the same\? \[y\/N\] /)
  const yes = await runCli(args, { tty: true, stdin: 'yes\n' })
  assert.equal(yes.code, 0, yes.err)
  const tofu = await runCli([...args, '--trust-on-first-use'])
  assert.equal(tofu.code, 0, tofu.err)
  assert.match(tofu.err, /Warning: the CA of hub \S+ is taken unverified/)
  const typed = await runCli(joining('--ca-hash', hash, '--dry-run'), { tty: true, stdin: `${token}\n` })
  assert.equal(typed.code, 0, typed.err)
  assert.ok(!typed.err.includes(token) && !typed.out.includes(token))
})

test('a hub is not taken for a managed cluster, nor the other way round', async () => {
  const self = [
    'join',
    '--kubeconfig',
    hub.kubeconfig,
    '--hub-apiserver',
    hub.server,
    '--cluster-name',
    'c1',
    '--hub-token',
    token,
    '--ca-hash',
    hash,
  ]
  assert.match(
    await refused(1, self),
    /is a hub, and join is for the cluster that is to be managed\n {2}choose that cluster with --context or --kubeconfig/,
  )
  assert.match(
    await refused(1, ['get', 'klusterlet-info', '--kubeconfig', hub.kubeconfig]),
    /this command is for a managed cluster, and \S+ \(.*\) is a hub\n/,
  )
  for (const command of [
    ['get', 'clusters'],
    ['accept', '--clusters', 'c1'],
    ['get', 'token'],
    ['clusterset', 'bind', 'x'],
  ])
    assert.match(
      await refused(1, [...command, '--kubeconfig', plain.kubeconfig]),
      /this command is for a hub, and \S+ \(.*\) is not a hub\n {2}choose the hub/,
    )
  const there = [
    'join',
    '--kubeconfig',
    plain.kubeconfig,
    '--hub-apiserver',
    plain.server,
    '--cluster-name',
    'c1',
    '--hub-token',
    token,
  ]
  const ca = join(plain.folder, 'own-ca.crt')
  writeFileSync(ca, plain.ca)
  assert.match(await refused(1, [...there, '--ca-file', ca]), /refuses the token/)
})

test('a cluster that nobody knows, with the nearest that is known', async () => {
  await admin.of(ManagedCluster).create({ metadata: { name: 'paris' }, spec: {} })
  assert.match(
    await refused(1, ['accept', '--clusters', 'pariss', '--kubeconfig', hub.kubeconfig]),
    /there is no cluster pariss\n {2}did you mean paris\?/,
  )
  const stdin = 'apiVersion: v1\nkind: Namespace\nmetadata: { name: x }\n'
  const create = ['create', 'work', 'w', '-f', '-', '--clusters', 'pari', '--kubeconfig', hub.kubeconfig]
  assert.match(await refused(1, create, { stdin }), /there is no cluster pari\n {2}did you mean paris\?/)
})

test('R1.31 a cluster with an ARN wants aws-irsa, and is not let in by a certificate instead', async () => {
  const annotations = { 'eks-managed-cluster-arn': 'arn:aws:eks:us-west-2:123456789012:cluster/m' }
  await admin.of(ManagedCluster).create({ metadata: { name: 'on-eks', annotations }, spec: {} })
  assert.match(
    await refused(1, ['accept', '--clusters', 'on-eks', '--kubeconfig', hub.kubeconfig]),
    /this hub does not take aws-irsa: its ClusterManager .* has csr only\n.*clusteradm init --registration-auth aws-irsa/,
  )
})

test("R1.35 certificate requests that are not the cluster's own are not approved, and the cluster stays out", async () => {
  await admin.of(ManagedCluster).create({ metadata: { name: 'rome' }, spec: {} })
  const ask = async (name: string, user: string, commonName: string): Promise<void> => {
    const { csr } = createRequest({ commonName, organizations: ['system:open-cluster-management:rome'], key: newKey() })
    await hub
      .client({ user, groups: ['system:masters'] })
      .of(CertificateSigningRequest)
      .create({
        metadata: { name, labels: { [label.clusterName]: 'rome' } },
        spec: {
          request: Buffer.from(csr).toString('base64'),
          signerName: 'kubernetes.io/kube-apiserver-client',
          usages: ['client auth'],
        },
      })
  }
  const accept = ['accept', '--clusters', 'rome', '--kubeconfig', hub.kubeconfig]
  await ask('by-mallory', 'mallory', 'system:open-cluster-management:rome:agent1')
  await ask('for-admin', 'system:serviceaccount:open-cluster-management:agent-registration-bootstrap', 'system:admin')
  const { code, err } = await runCli(accept)
  assert.equal(code, 1)
  assert.match(err, /by-mallory is not approved: it was made by mallory, which is no account for joining/)
  assert.match(err, /for-admin is not approved: the common name "system:admin" is not/)
  assert.match(err, /Error: cluster rome is not let in: no certificate request for it is its own/)
  assert.equal((await admin.of(ManagedCluster).get('rome')).spec.hubAcceptsClient, false)
  await ask(
    'good',
    'system:serviceaccount:open-cluster-management:agent-registration-bootstrap',
    'system:open-cluster-management:rome:agent1',
  )
  await ask(
    'rival',
    'system:serviceaccount:open-cluster-management:agent-registration-bootstrap',
    'system:open-cluster-management:rome:agent2',
  )
  const two = await runCli(accept)
  assert.match(
    two.err,
    /Error: several agents ask for cluster rome: good \(agent agent1, .*\), rival \(agent agent2, .*\)\n {2}say which: .* --csr NAME/,
  )
  const chosen = await runCli([...accept, '--csr', 'good'])
  assert.equal(chosen.code, 0, chosen.err)
  assert.match(chosen.out, /Cluster rome is let in; approved: good/)
  const conditions = async (name: string) =>
    (await admin.of(CertificateSigningRequest).get(name)).status?.conditions ?? []
  assert.equal((await conditions('good'))[0]?.type, 'Approved')
  for (const name of ['by-mallory', 'for-admin', 'rival']) assert.deepEqual(await conditions(name), [])
})
