import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recipeKey } from '../aws/index.ts'
import { walkChain, type Asked, type Directory } from './chain.ts'
import { describeRefusal } from './chain-checks.ts'
import { longestChain } from './contract.ts'
import { sourceFaults } from './source-faults.ts'
import type { AWSClusterRoleIdentity } from '../api/index.ts'

const all = { allowedNamespaces: {} }
const arnOf = (account: string, name = 'capa') => `arn:aws:iam::${account}:role/${name}`
const ref = (kind: string, name: string) => ({ kind: `AWSCluster${kind}Identity`, name })

const world = (
  identities: Record<string, object>,
  namespaces: Record<string, Record<string, string>> = { red: {} },
) => {
  const found = new Map(
    Object.entries(identities).map(([key, identity]) => {
      const parts = key.split('/')
      const metadata = { name: parts.at(-1)!, uid: key, ...(parts.length > 2 ? { namespace: parts[1] } : {}) }
      return [key, { metadata, ...identity }]
    }),
  )
  return {
    identity: (key) => found.get(key),
    namespace: (name) => (namespaces[name] ? { name, labels: namespaces[name] } : undefined),
    controllerNamespace: 'hub',
  } satisfies Directory
}

const walk = (directory: Directory, reference: Asked['reference'], more: Partial<Asked> = {}) =>
  walkChain(directory, { reference, namespace: 'red', region: 'eu-west-1', ...more })

const good = {
  'AWSClusterControllerIdentity/default': { spec: all },
  'AWSClusterStaticIdentity/keys': { spec: { ...all, secretRef: { namespace: 'vault', name: 'k' } } },
  'AWSClusterStaticIdentity/plain': { spec: { ...all, secretRef: 'k' } },
  'AWSClusterRoleIdentity/jump': {
    spec: { ...all, roleARN: arnOf('111122223333'), sourceIdentityRef: ref('Static', 'keys') },
  },
  'AWSClusterRoleIdentity/prod': {
    spec: {
      ...all,
      roleARN: arnOf('444455556666', 'teams/a/capa'),
      sessionName: 'acme',
      durationSeconds: 7200,
      externalID: 'secret-handshake',
      inlinePolicy: '{}',
      policyARNs: ['Restricted', 'arn:aws:iam::aws:policy/ReadOnlyAccess'],
      tags: { company: 'acme' },
      transitiveTags: ['company'],
      sourceIdentityRef: ref('Role', 'jump'),
    },
  },
  'AWSClusterRoleIdentity/orphan': { spec: { ...all, roleARN: arnOf('444455556666') } },
  'AWSServiceAccountIdentity/red/tenant': {
    spec: { roleARN: arnOf('777788889999'), audiences: ['sts.amazonaws.com'], expirationSeconds: 3600 },
  },
}

test('R3.28 R3.35 a chain becomes a recipe with everything that the roles say', () => {
  const { recipe, links, path } = walk(world(good), ref('Role', 'prod'))
  assert.deepEqual(recipe, {
    kind: 'role',
    role: {
      arn: arnOf('444455556666', 'teams/a/capa'),
      sessionName: 'acme',
      durationSeconds: 7200,
      externalId: 'secret-handshake',
      inlinePolicy: '{}',
      policyArns: ['arn:aws:iam::444455556666:policy/Restricted', 'arn:aws:iam::aws:policy/ReadOnlyAccess'],
      tags: { company: 'acme' },
      transitiveTagKeys: ['company'],
      region: 'eu-west-1',
    },
    source: {
      kind: 'role',
      role: { arn: arnOf('111122223333'), sessionName: 'lanyard-jump', region: 'eu-west-1' },
      source: { kind: 'static', secret: { namespace: 'vault', name: 'k' } },
    },
  })
  assert.equal(path, 'AWSClusterRoleIdentity prod ← AWSClusterRoleIdentity jump ← AWSClusterStaticIdentity keys')
  assert.match(links[0]!.notes[0]!, /3600 s and not the 7200 s/)
})

test('R3.24 R3.34 R3.37 plain secrets are in the namespace of the controller, roles without source begin with it, accounts have tokens', () => {
  assert.deepEqual(walk(world(good), ref('Static', 'plain')).recipe, {
    kind: 'static',
    secret: { namespace: 'hub', name: 'k' },
  })
  const orphan = walk(world(good), ref('Role', 'orphan'))
  assert.deepEqual(orphan.recipe?.kind === 'role' && orphan.recipe.source, { kind: 'controller' })
  assert.deepEqual(orphan.links[1]?.reference, { kind: 'AWSClusterControllerIdentity', name: 'default' })
  assert.deepEqual(walk(world(good), { kind: 'AWSServiceAccountIdentity', name: 'tenant' }).recipe, {
    kind: 'serviceAccount',
    account: { namespace: 'red', name: 'tenant' },
    audiences: ['sts.amazonaws.com'],
    expirationSeconds: 3600,
    role: { arn: arnOf('777788889999'), sessionName: 'lanyard-red.tenant', region: 'eu-west-1' },
  })
})

test('R3.41 metadata is no part of a recipe; region, source and role are', () => {
  const key = (directory: Directory, more: Partial<Asked> = {}) =>
    recipeKey(walk(directory, ref('Role', 'prod'), more).recipe!)
  const labelled = world({
    ...good,
    'AWSClusterRoleIdentity/prod': {
      ...good['AWSClusterRoleIdentity/prod'],
      metadata: { name: 'prod', labels: { a: 'b', c: 'd' } },
    },
  })
  assert.equal(key(labelled), key(world(good)))
  assert.notEqual(key(world(good), { region: 'us-east-1' }), key(world(good)))
  const rebased = world({
    ...good,
    'AWSClusterRoleIdentity/jump': {
      spec: { ...all, roleARN: arnOf('111122223333'), sourceIdentityRef: ref('Static', 'plain') },
    },
  })
  assert.notEqual(key(rebased), key(world(good)))
})

const without = (key: keyof typeof good, allowedNamespaces?: object) => ({
  ...good,
  [key]: { spec: { ...good[key].spec, allowedNamespaces } },
})

/** What is wrong, which link is at fault, why, and words of the advice. */
const refusals: [
  title: string,
  directory: Directory,
  reference: Asked['reference'],
  index: number,
  reason: string,
  words: RegExp,
  more?: Partial<Asked>,
][] = [
  [
    'the identity does not allow the namespace',
    world(without('AWSClusterRoleIdentity/prod')),
    ref('Role', 'prod'),
    0,
    'PrincipalUsageUnauthorized',
    /not permitted to use AWSClusterRoleIdentity: prod.*no namespace.*add red to spec.allowedNamespaces/,
  ],
  [
    'the source in the middle does not',
    world(without('AWSClusterRoleIdentity/jump', { list: ['blue'] })),
    ref('Role', 'prod'),
    1,
    'SourcePrincipalUsageUnauthorized',
    /AWSClusterRoleIdentity: jump.*namespaces blue.*every link/,
  ],
  [
    'the source at the end does not',
    world(without('AWSClusterStaticIdentity/keys', { list: [] })),
    ref('Role', 'prod'),
    2,
    'SourcePrincipalUsageUnauthorized',
    /AWSClusterStaticIdentity: keys/,
  ],
  [
    'a role without source needs the permission of the controller identity',
    world(without('AWSClusterControllerIdentity/default')),
    ref('Role', 'orphan'),
    1,
    'SourcePrincipalUsageUnauthorized',
    /AWSClusterControllerIdentity: default/,
  ],
  [
    'it does not exist',
    world(good),
    ref('Static', 'nobody'),
    0,
    'IdentityNotFound',
    /nobody does not exist; create it, or name another one in spec.identityRef/,
  ],
  [
    'its source does not exist',
    world({ 'AWSClusterRoleIdentity/prod': good['AWSClusterRoleIdentity/prod'] }),
    ref('Role', 'prod'),
    1,
    'IdentityNotFound',
    /jump does not exist.*sourceIdentityRef/,
  ],
  [
    'another controller identity than default',
    world({ ...good, 'AWSClusterControllerIdentity/mine': { spec: all } }),
    ref('Controller', 'mine'),
    0,
    'IdentityNotFound',
    /the only one is default/,
  ],
  [
    'an identity of another namespace is not found',
    world(good),
    { kind: 'AWSServiceAccountIdentity', name: 'tenant' },
    0,
    'IdentityNotFound',
    /does not exist in namespace blue/,
    { namespace: 'blue' },
  ],
  [
    'a kind that is none',
    world({ ...good, 'Secret/x': { spec: all } }),
    { kind: 'Secret', name: 'x' },
    0,
    'IdentityKindUnknown',
    /no identity kind Secret/,
  ],
  [
    'a kind that is a word of JavaScript',
    world(good),
    { kind: 'constructor', name: 'x' },
    0,
    'IdentityKindUnknown',
    /constructor/,
  ],
  [
    'a service account cannot be the source of a role',
    world({
      ...good,
      'AWSClusterRoleIdentity/jump': {
        spec: {
          ...all,
          roleARN: arnOf('111122223333'),
          sourceIdentityRef: { kind: 'AWSServiceAccountIdentity', name: 'tenant' },
        },
      },
    }),
    ref('Role', 'prod'),
    2,
    'SourcePrincipalUsageUnauthorized',
    /its namespace's users make it/,
  ],
  [
    'the namespace of the controller, whose own account could be named',
    world(
      { ...good, 'AWSServiceAccountIdentity/hub/lanyard-hub': { spec: { roleARN: arnOf('777788889999') } } },
      { hub: {} },
    ),
    { kind: 'AWSServiceAccountIdentity', name: 'lanyard-hub' },
    0,
    'PrincipalUsageUnauthorized',
    /namespace hub of the controller/,
    { namespace: 'hub' },
  ],
  [
    'it is being deleted, and this cluster is new',
    world({
      ...good,
      'AWSClusterStaticIdentity/keys': {
        metadata: { name: 'keys', deletionTimestamp: 'now' },
        spec: good['AWSClusterStaticIdentity/keys'].spec,
      },
    }),
    ref('Static', 'keys'),
    0,
    'IdentityDeleting',
    /takes no new clusters/,
  ],
  [
    'a role ARN that is none',
    world({ 'AWSClusterRoleIdentity/x': { spec: { ...all, roleARN: 'arn:aws:s3:::bucket' } } }),
    ref('Role', 'x'),
    0,
    'IdentityInvalid',
    /spec.roleARN.*write arn:aws:iam/,
  ],
  [
    'an account of nine digits',
    world({ 'AWSClusterRoleIdentity/x': { spec: { ...all, roleARN: arnOf('123456789') } } }),
    ref('Role', 'x'),
    0,
    'IdentityInvalid',
    /twelve digits/,
  ],
  [
    'a role of another partition',
    world({
      ...good,
      'AWSClusterRoleIdentity/jump': {
        spec: { ...all, roleARN: 'arn:aws-cn:iam::111122223333:role/x', sourceIdentityRef: ref('Static', 'keys') },
      },
    }),
    ref('Role', 'prod'),
    1,
    'PartitionMismatch',
    /aws-cn/,
  ],
  [
    'a region that is a host',
    world(good),
    ref('Role', 'prod'),
    0,
    'RegionInvalid',
    /is not a region/,
    { region: 'evil.example.com/' },
  ],
  [
    'no secret is named',
    world({ 'AWSClusterStaticIdentity/x': { spec: all } }),
    ref('Static', 'x'),
    0,
    'IdentityInvalid',
    /names no secret/,
  ],
]

for (const [title, directory, reference, index, reason, words, more] of refusals)
  test(`R3.6 R3.17 R3.19 R3.20 R3.34 R3.35 R3.51 R3.60 R3.62 ${title}: refused at link ${index}, with ${reason}`, () => {
    const { refusal, recipe } = walk(directory, reference, more)
    assert.equal(recipe, undefined)
    assert.equal(refusal?.reason, reason)
    assert.equal(refusal.index, index)
    assert.match(describeRefusal(refusal), words)
  })

test('R3.51 a cluster that has used an identity keeps it until it is gone', () => {
  const leaving = world({
    ...good,
    'AWSClusterStaticIdentity/keys': {
      metadata: { name: 'keys', deletionTimestamp: 'now' },
      spec: good['AWSClusterStaticIdentity/keys'].spec,
    },
  })
  assert.equal(walk(leaving, ref('Static', 'keys'), { established: true }).recipe?.kind, 'static')
})

const role = (name: string, source: { kind: string; name: string }) => ({
  [`AWSClusterRoleIdentity/${name}`]: {
    spec: { ...all, roleARN: arnOf('111122223333', name), sourceIdentityRef: source },
  },
})

test('R3.35 loops end, and are told with their path: to itself, over two, and behind an entrance', () => {
  const self = walk(world(role('a', ref('Role', 'a'))), ref('Role', 'a'))
  assert.equal(self.refusal?.reason, 'IdentityLoop')
  assert.match(self.refusal.message, /AWSClusterRoleIdentity a ← AWSClusterRoleIdentity a$/)
  const two = world({ ...role('in', ref('Role', 'a')), ...role('a', ref('Role', 'b')), ...role('b', ref('Role', 'a')) })
  assert.match(walk(two, ref('Role', 'in')).refusal!.message, /in ← .*a ← .*b ← AWSClusterRoleIdentity a$/)
})

test(`R3.35 a chain of ${longestChain} links works, and one more is refused, at admission too`, () => {
  const chain = (links: number) => {
    const roles = Array.from({ length: links - 1 }, (_, i) =>
      role(`r${i}`, i === links - 2 ? ref('Static', 'keys') : ref('Role', `r${i + 1}`)),
    )
    return world(Object.assign({}, good, ...roles) as Record<string, object>)
  }
  assert.equal(walk(chain(longestChain), ref('Role', 'r0')).refusal, undefined)
  const long = walk(chain(longestChain + 1), ref('Role', 'r0'))
  assert.equal(long.refusal?.reason, 'IdentityChainTooLong')
  const first = chain(longestChain + 1).identity('AWSClusterRoleIdentity/r0') as AWSClusterRoleIdentity
  assert.match(sourceFaults(chain(longestChain + 1), first).causes[0]!.message, /more than 8 links/)
  const fits = chain(longestChain).identity('AWSClusterRoleIdentity/r0') as AWSClusterRoleIdentity
  assert.deepEqual(sourceFaults(chain(longestChain), fits).causes, [])
})

test('R3.60 every link has its own verdict, also behind one that is refused', () => {
  const { links } = walk(
    world({
      ...without('AWSClusterRoleIdentity/prod'),
      ...without('AWSClusterRoleIdentity/prod'),
      'AWSClusterStaticIdentity/keys': { spec: { secretRef: 'k' } },
    }),
    ref('Role', 'prod'),
  )
  assert.deepEqual(
    links.map((link) => link.refusal?.reason),
    ['PrincipalUsageUnauthorized', undefined, 'SourcePrincipalUsageUnauthorized'],
  )
})
