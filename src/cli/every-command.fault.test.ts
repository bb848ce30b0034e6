/** Every command of the tree: twice in a row, interrupted at any moment, and twice at the same time. */
import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { crds, installCrds, ManagedCluster } from '../api/index.ts'
import { Namespace } from '../kube/index.ts'
import { runCli, seededRandom, startControlPlane, type CliResult, type ControlPlane } from '../../testkit/index.ts'
import type { Tree } from './command.ts'
import { tree } from './tree.ts'

interface Case {
  command: string
  /** More words than the command itself. */
  words?: string
  /** What its second run answers; `undefined` leaves it to `says`. */
  code?: number
  /** What a run that does not complete says. */
  says?: RegExp
}

const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'r' }, rules: [] }
const folder = mkdtempSync(join(tmpdir(), 'lanyard-commands-'))
const manifest = join(folder, 'role.json')
writeFileSync(manifest, JSON.stringify(role))
const hubArn = 'arn:aws:eks:eu-west-1:111111111111:cluster/hub'
const managedArn = 'arn:aws:eks:eu-west-1:222222222222:cluster/one'

/** On one cluster that is a hub, in an order in which each finds what it needs. */
const cases: Case[] = [
  { command: 'init' },
  { command: 'get token' },
  { command: 'create clusterset', words: 'blue' },
  { command: 'clusterset set', words: 'blue --clusters c1' },
  { command: 'clusterset bind', words: 'blue --namespace default' },
  { command: 'create work', words: `w -f ${manifest} --clusters c1` },
  { command: 'accept', words: '--clusters c1', code: 1, says: /has not asked for a certificate/ },
  { command: 'addon create', words: `hello -f ${manifest}` },
  { command: 'addon enable', words: '--names hello --clusters c1' },
  { command: 'get clusters' },
  { command: 'get works' },
  { command: 'get addons' },
  { command: 'get clustersets' },
  { command: 'get hub-info' },
  { command: 'get klusterlet-info', code: 1, says: /Error: / },
  { command: 'describe cluster', words: 'c1' },
  { command: 'doctor', words: 'c1', code: 1 },
  { command: 'move', words: '-n c1 --to-context nowhere', code: 1, says: /Error: / },
  { command: 'access who-can', words: 'get pods --cluster c1' },
  { command: 'access of', words: 'User:kim' },
  { command: 'access list' },
  { command: 'access diff', words: 'c1 c2' },
  { command: 'access approve' },
  { command: 'aws identities' },
  { command: 'aws whoami', words: '--cluster default/none', code: 1, says: /Error: / },
  { command: 'aws explain', words: 'default/none', code: 1, says: /Error: / },
  { command: 'aws trust-policy', words: 'default/none', code: 1, says: /Error: / },
  { command: 'aws prerequisites hub', words: `--hub-cluster-arn ${hubArn} --oidc-provider oidc.example.com/id/1` },
  {
    command: 'aws prerequisites managed',
    words: `--hub-cluster-arn ${hubArn} --managed-cluster-arn ${managedArn} --oidc-provider oidc.example.com/id/2`,
  },
  {
    command: 'token',
    words: '--cluster c1 --name reader',
    code: 1,
    says: /there is no ManagedServiceAccount c1\/reader/,
  },
  {
    command: 'kubeconfig',
    words: '--cluster c1 --service-account reader',
    code: 1,
    says: /there is no ManagedServiceAccount c1\/reader/,
  },
  { command: 'eks-token', words: '--cluster-name hub --region eu-west-1', code: 1, says: /Error: / },
  { command: 'addon disable', words: '--names hello --clusters c1', code: 1, says: /there is no enabled add-on hello/ },
  { command: 'delete work', words: 'w --clusters c1', says: /no work w/ },
  { command: 'clusterset unbind', words: 'blue --namespace default', says: /Error: / },
  { command: 'create clusterset', words: 'green' },
  { command: 'clusterset set', words: 'green --clusters c1' },
  { command: 'delete clusterset', words: 'blue', says: /no cluster set blue/ },
  { command: 'upgrade clustermanager', words: '--bundle-version 9.9.9', says: /Error: / },
  { command: 'upgrade klusterlet', words: '--bundle-version 9.9.9', code: 1, says: /Error: / },
  { command: 'join', words: '--cluster-name c9 --hub-apiserver https://127.0.0.1:1', code: 1, says: /Error: / },
  { command: 'unjoin', says: /Error: |nothing to do/ },
  { command: 'delete token' },
  { command: 'version' },
  { command: 'completion', words: 'bash' },
  { command: 'help' },
  { command: 'clean', says: /Error: / },
]

let hub: ControlPlane

const run = ({ command, words = '' }: Case, signal?: AbortSignal): Promise<CliResult> =>
  runCli([...`${command} ${words}`.trim().split(' '), '--kubeconfig', hub.kubeconfig], {
    env: { LANYARD_HUB_TOKEN: 'not-one', AWS_EC2_METADATA_DISABLED: 'true' },
    ...(signal && { signal }),
  })

before(async () => {
  hub = await startControlPlane()
  await installCrds(hub.client(), crds({ conversion: 'none' }))
  for (const name of ['c1', 'c2']) {
    await hub.client().of(Namespace).create({ metadata: { name } })
    await hub.client().of(ManagedCluster).create({ metadata: { name }, spec: {} })
  }
})
after(() => hub.stop())

test('R1.65 each command of the tree has a case here', () => {
  const programs = ['hub', 'agent', 'operator', 'service-accounts-agent', 'leave', 'cleanup-unjoined', '__complete']
  const leaves = (of: Tree, path: string[] = []): string[] =>
    Object.entries(of).flatMap(([word, branch]) => [
      ...(branch.load ? [[...path, word].join(' ')] : []),
      ...leaves(branch.commands ?? {}, [...path, word]),
    ])
  const known = new Set([...cases.map(({ command }) => command), ...programs])
  assert.deepEqual(new Set(leaves(tree)), known)
})

test('R1.65 every command twice in a row, interrupted at random, and twice at the same time completes or says why not', async (t) => {
  const random = seededRandom(t)
  for (const one of cases) {
    const about = `${one.command} ${one.words ?? ''}`
    const judge = ({ code, out, err }: CliResult, when: string): void => {
      assert.ok([0, 1, 2, 3].includes(code), `${about} ${when}: ${code} ${err}`)
      assert.doesNotMatch(err, /\n\s+at |TypeError|ReferenceError/, `${about} ${when} crashed`)
      if (code !== 0 && one.command !== 'doctor')
        assert.match(err, one.says ?? /Error: /, `${about} ${when} says why not`)
      if (code === 0) assert.ok(out !== '' || err !== '', `${about} ${when} says what it did`)
    }
    const stop = new AbortController()
    const timer = setTimeout(() => stop.abort(new Error('SIGINT')), random.below(150))
    const cut = await run(one, stop.signal)
    clearTimeout(timer)
    if (cut.code === 130) assert.match(cut.err, /Error: interrupted/, about)
    else judge(cut, 'that was to be interrupted')
    judge(await run(one), 'after that')
    const second = await run(one)
    judge(second, 'the second time')
    if (!(one.says && one.code === undefined)) assert.equal(second.code, one.code ?? 0, `${about}: ${second.err}`)
    for (const both of await Promise.all([run(one), run(one)])) judge(both, 'twice at the same time')
  }
})
