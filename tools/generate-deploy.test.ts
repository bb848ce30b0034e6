import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import type { KubeObject } from '../src/kube/index.ts'
import { hubInstall, managedInstall, ownVersion } from '../src/operator/index.ts'
import { staleDeployFiles, writeDeployFiles } from './generate-deploy.ts'

const filled = async (t: { after(clean: () => Promise<void>): void }): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'lanyard-deploy-'))
  t.after(() => rm(folder, { recursive: true }))
  await writeDeployFiles(folder)
  return folder
}

/** The things that our templates use of Helm's language; anything else fails. */
const rendered = (template: string, values: Record<string, unknown>): string => {
  const valueOf = (name: string): unknown => {
    assert.ok(name in values, `there is no value ${name}`)
    return values[name]
  }
  return template
    .replaceAll(/\{\{- if \.Values\.(\w+) \}\}\n([^{]*)\{\{- end \}\}\n/g, (_, name: string, text: string) =>
      valueOf(name) ? text : '',
    )
    .replaceAll(/\{\{ (toJson )?\.Values\.(\w+) \}\}/g, (_, json: string | undefined, name: string) =>
      json ? JSON.stringify(valueOf(name)) : String(valueOf(name)),
    )
}

/** The objects of a chart, as Helm makes them. */
const chartObjects = async (folder: string, set: Record<string, unknown> = {}): Promise<KubeObject[]> => {
  const values = parse(await readFile(join(folder, 'values.yaml'), 'utf8')) as Record<string, unknown>
  const render = async (part: string): Promise<KubeObject[]> => {
    const names = (await readdir(join(folder, part))).filter((name) => !/^(NOTES.txt|check-)/.test(name))
    const texts = await Promise.all(names.map((name) => readFile(join(folder, part, name), 'utf8')))
    return texts.map((text) => parse(part === 'templates' ? rendered(text, { ...values, ...set }) : text) as KubeObject)
  }
  const objects = [...(await render('templates')), ...(await render('crds'))]
  assert.ok(!JSON.stringify(objects).includes('{{') && !JSON.stringify(objects).includes('LANYARD-'))
  return objects
}

const byName = (objects: KubeObject[]): KubeObject[] => {
  const key = ({ kind, metadata }: KubeObject): string => `${kind} ${metadata.namespace} ${metadata.name}`
  return objects.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
}
/** Helm makes the namespace, and a person the secret that images are pulled with. */
const notGiven = ({ kind, metadata }: KubeObject): boolean =>
  kind !== 'Secret' && (kind !== 'Namespace' || metadata.name !== 'open-cluster-management')
const plain = (objects: readonly KubeObject[]): KubeObject[] => JSON.parse(JSON.stringify(objects)) as KubeObject[]

for (const [file, chart, install] of [
  ['hub.yaml', 'cluster-manager', hubInstall],
  ['managed-cluster.yaml', 'klusterlet', managedInstall],
] as const) {
  test(`deploy/${file} holds what the command line installs, in its order`, async (t) => {
    const text = await readFile(join(await filled(t), file), 'utf8')
    const objects = parseAllDocuments(text).map((document) => document.toJS() as KubeObject)
    assert.deepEqual(objects, plain(install({ version: await ownVersion() })))
  })

  test(`R1.70 the chart ${chart}, rendered with its own values, is the same but for what others make`, async (t) => {
    const objects = await chartObjects(join(await filled(t), 'charts', chart))
    assert.deepEqual(byName(objects), byName(plain(install({ version: await ownVersion() }).filter(notGiven))))
  })

  test(`the chart ${chart} makes of its values what the flags of the command line make of theirs`, async (t) => {
    const folder = join(await filled(t), 'charts', chart)
    const resources = { limits: { cpu: '1' } }
    const workRole = chart === 'klusterlet' ? 'edit' : undefined
    const set = { image: 'registry.example.com:5000/lanyard@sha256:0a', replicas: 3, pullSecret: true, resources }
    const objects = await chartObjects(folder, { ...set, ...(workRole && { workRole }) })
    const wanted = install({
      ...set,
      ...(workRole && { workRole }),
      sizing: { type: 'ResourceRequirement', resourceRequirements: resources },
      pullCredentials: '{}',
    })
    assert.deepEqual(byName(objects), byName(plain(wanted.filter(notGiven))))
  })

  test(`R1.70 the chart ${chart} refuses values that it does not have, and another namespace`, async (t) => {
    const folder = join(await filled(t), 'charts', chart)
    const values = parse(await readFile(join(folder, 'values.yaml'), 'utf8')) as object
    const schema = JSON.parse(await readFile(join(folder, 'values.schema.json'), 'utf8')) as {
      additionalProperties: boolean
      properties: Record<string, { type: string | string[]; pattern?: string }>
    }
    assert.equal(schema.additionalProperties, false)
    const { global, ...own } = schema.properties
    assert.ok(global, 'Helm adds it where a chart is a part of another')
    assert.deepEqual(Object.keys(own).toSorted(), Object.keys(values).toSorted())
    for (const [name, value] of Object.entries(values) as [string, unknown][]) {
      const { type, pattern } = own[name]!
      assert.ok([type].flat().includes(typeof value === 'number' ? 'integer' : typeof value), name)
      if (pattern) assert.match(String(value), new RegExp(pattern))
    }
    const check = await readFile(join(folder, 'templates/check-namespace.yaml'), 'utf8')
    assert.match(check, /\{\{- if ne \.Release\.Namespace "open-cluster-management" \}\}\n\{\{- fail "/)
  })
}

test('a file that was changed by hand, or that nothing generates, is named', async (t) => {
  const folder = await filled(t)
  assert.deepEqual(await staleDeployFiles(folder), [])
  await writeFile(join(folder, 'hub.yaml'), 'changed')
  await writeFile(join(folder, 'old.yaml'), 'old')
  assert.deepEqual(await staleDeployFiles(folder), ['hub.yaml', 'old.yaml'])
  assert.deepEqual(await writeDeployFiles(folder), ['hub.yaml', 'old.yaml'])
  assert.deepEqual(await staleDeployFiles(folder), [])
})
