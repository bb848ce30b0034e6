import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changedMapRoles, isMapped, MapRolesError, readMapRoles } from './map-roles.ts'

const role = (name: string): string => `arn:aws:iam::111111111111:role/${name}`
const entry = (name: string) => ({ roleArn: role(name), username: `system:${name}`, groups: [`system:${name}`] })
const set = (text: string, ...names: string[]) => changedMapRoles(text, { set: names.map(entry), remove: [] })
const remove = (text: string, ...names: string[]) => changedMapRoles(text, { set: [], remove: names.map(role) })

/** As people and eksctl write it: comments, two indentations, quotes, a block in the middle. */
const styles: Record<string, string> = {
  'as EKS writes it': `- groups:
  - system:bootstrappers
  - system:nodes
  rolearn: arn:aws:iam::111111111111:role/nodes
  username: system:node:{{EC2PrivateDNSName}}
`,
  'indented, with comments': `# nodes - do not touch
  - rolearn: "arn:aws:iam::111111111111:role/nodes" # made by terraform
    username: 'system:node:{{EC2PrivateDNSName}}'
    groups: [ system:bootstrappers,   system:nodes ]

  # people
  - rolearn: arn:aws:iam::111111111111:role/admin
    username: admin
    groups:
      - system:masters
  # the end - really`,
  'a comment after the dash': `- # first - of all
  rolearn: arn:aws:iam::111111111111:role/nodes
  groups: []
`,
}

test('R1.33 entries are added to aws-auth and taken out, and the text of all others stays as it was, byte for byte', async () => {
  for (const [style, text] of Object.entries(styles)) {
    const one = await set(text, 'a')
    assert.ok(one.startsWith(text), style)
    const two = await set(one, 'b')
    assert.ok(isMapped(await readMapRoles(two), entry('a')) && isMapped(await readMapRoles(two), entry('b')), style)
    assert.ok((await readMapRoles(two)).has(role('nodes')), style)
    assert.equal(await remove(two, 'b'), one, style)
    assert.equal((await remove(two, 'a', 'b')).trimEnd(), text.trimEnd(), style)
    assert.equal(await set(two, 'a', 'b'), two, style)
    assert.equal(await remove(text, 'a'), text, style)
  }
})

test('R1.33 an entry in the middle goes without the comments around it', async () => {
  const text = `${styles['indented, with comments']!.replace('  # the end - really', '')}${(await set('', 'a')).replaceAll(/^/gm, '  ').trimEnd()}\n  # after\n`
  const cut = await remove(text, 'admin')
  assert.ok(cut.includes('# people') && cut.includes('# made by terraform') && cut.includes('# after'), cut)
  assert.deepEqual([...(await readMapRoles(cut)).keys()], [role('nodes'), role('a')])
})

test('R1.33 an aws-auth that is empty, in JSON or in flow style is understood', async () => {
  for (const nothing of ['', '[]', '``', "''", 'null', '# only a comment\n', '# a\n[]\n']) {
    const made = await set(nothing, 'a')
    assert.deepEqual([...(await readMapRoles(made)).keys()], [role('a')], nothing)
    assert.equal(made.includes('#'), nothing.includes('#'), nothing)
  }
  const json = JSON.stringify([{ rolearn: role('nodes'), username: 'n', groups: ['g'] }])
  const both = await set(json, 'a')
  assert.deepEqual([...(await readMapRoles(both)).keys()], [role('nodes'), role('a')])
  assert.deepEqual([...(await readMapRoles(await remove(both, 'a'))).keys()], [role('nodes')])
})

test('R1.33 what somebody changed in our entry, or put beside it, is put right', async () => {
  const made = await set(styles['as EKS writes it']!, 'a')
  const bent = made.replace('    - system:a', '    - system:masters')
  assert.equal(isMapped(await readMapRoles(bent), entry('a')), false)
  assert.equal(await set(bent, 'a'), made)
  const twice = `${made}- rolearn: ${role('A')}\n  username: x\n  groups: [system:masters]\n`.replace(
    'role/A',
    'role/a',
  )
  assert.equal(isMapped(await readMapRoles(twice), entry('a')), false)
  assert.equal(await set(twice, 'a'), made)
  // The last entry counts for the authenticator; the other one would, as soon as somebody removes it.
  const hidden = `- rolearn: ${role('a')}\n  username: x\n  groups: [system:masters]\n${made}`
  assert.equal(isMapped(await readMapRoles(hidden), entry('a')), false)
  assert.equal(await set(hidden, 'a'), made)
})

test('R1.33 a broken aws-auth is left alone, and its error quotes nothing of it', async () => {
  for (const broken of ['- rolearn: "x', 'rolearn: x', 'text', '- a: 1\n- *b\n'])
    await assert.rejects(set(broken, 'a'), MapRolesError)
})
