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

/** The two things that our templates use of Helm's language; anything else fails. */
const rendered = (template: string, values: Record<string, unknown>): string =>
  template.replaceAll(/\{\{ (toJson )?\.Values\.(\w+) \}\}/g, (_, json: string | undefined, name: string) => {
    assert.ok(name in values, `there is no value ${name}`)
    return json ? JSON.stringify(values[name]) : String(values[name])
  })

const byName = (objects: KubeObject[]): KubeObject[] => {
  const key = ({ kind, metadata }: KubeObject): string => `${kind} ${metadata.namespace} ${metadata.name}`
  return objects.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
}
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

  test(`the chart ${chart}, rendered with its own values, is the same but for the namespace that Helm makes`, async (t) => {
    const folder = join(await filled(t), 'charts', chart)
    const values = parse(await readFile(join(folder, 'values.yaml'), 'utf8')) as Record<string, unknown>
    const render = async (part: string): Promise<KubeObject[]> => {
      const names = await readdir(join(folder, part))
      const texts = await Promise.all(names.map((name) => readFile(join(folder, part, name), 'utf8')))
      return texts.map((text) => parse(part === 'templates' ? rendered(text, values) : text) as KubeObject)
    }
    const objects = [...(await render('templates')), ...(await render('crds'))]
    assert.ok(!JSON.stringify(objects).includes('{{') && !JSON.stringify(objects).includes('LANYARD-'))
    const wanted = install({ version: await ownVersion() }).filter(
      ({ kind, metadata }) => kind !== 'Namespace' || metadata.name !== 'open-cluster-management',
    )
    assert.deepEqual(byName(objects), byName(plain(wanted)))
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
