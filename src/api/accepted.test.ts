import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseAllDocuments, YAMLParseError } from 'yaml'
import { type ControlPlane, startControlPlane } from '../../testkit/index.ts'
import {
  ApiError,
  apiVersionOf,
  type Client,
  CustomResourceDefinition,
  Namespace,
  type Resource,
  Secret,
  type Unstructured,
} from '../kube/index.ts'
import { allKinds, crds, installCrds, ManagedClusterAddOn } from './index.ts'

const folder = join(import.meta.dirname, 'fixtures')
const fixtures = (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort()
const invalid = fixtures.filter((name) => name.endsWith('.invalid.yaml'))

let plane: ControlPlane
let client: Client

before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  client = plane.client()
  await installCrds(client, crds({ conversion: 'none', borrowed: true }))
  const namespaces = ['cluster1', 'cluster-1', 'test', 'capa-system']
  await Promise.all(namespaces.map((name) => client.of(Namespace).create({ metadata: { name } })))
})

after(() => plane?.stop())

/** Resources by apiVersion and kind. */
const resources = new Map<string, Resource>(
  [...allKinds.flatMap((kind) => Object.values(kind.versions)), Namespace, Secret].map((of) => [
    `${apiVersionOf(of)}/${of.kind}`,
    of as Resource,
  ]),
)

const documentsIn = async (name: string): Promise<Unstructured[]> => {
  const documents = parseAllDocuments(await readFile(join(folder, name), 'utf8'))
  return [...documents].map((document) => {
    const [error] = document.errors
    if (error) throw error
    return document.toJS() as Unstructured
  })
}

const clientFor = (object: Unstructured) => {
  const of = resources.get(`${object.apiVersion}/${object.kind}`)
  assert.ok(of, `${object.apiVersion} ${object.kind} is a kind that we know`)
  return client.of(of)
}

/** Every field that was sent is there; the server may have added others. */
const includes = (actual: unknown, sent: unknown, at = ''): void => {
  if (typeof sent !== 'object' || sent === null) return assert.deepEqual(actual, sent, at)
  for (const [key, value] of Object.entries(sent))
    includes((actual as Record<string, unknown> | undefined)?.[key], value, `${at}.${key}`)
}

const create = (object: Unstructured) => clientFor(object).create(object, { dryRun: true })

/** Creates it, and gives what can be read at its own version. */
const stored = async (object: Unstructured): Promise<Unstructured> => {
  const { name, namespace } = object.metadata
  const kind = clientFor(object)
  if (object.kind === 'Namespace') await kind.apply(object, { fieldManager: 'test', force: true })
  else await kind.create(object)
  const at = client.of(kind.resource, namespace)
  const found = await at.get(name!)
  if (object.kind !== 'Namespace') await at.delete(name!)
  return found
}

const refusal = async (object: Unstructured): Promise<ApiError> => {
  try {
    await create(object)
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  return assert.fail(`${object.kind} ${object.metadata.name} was accepted`)
}

const fieldsOf = (error: ApiError) => (error.details.causes ?? []).map(({ field }) => field)

test('R0.32 every CRD is established, and its schema is structural', async () => {
  const { items } = await client.of(CustomResourceDefinition).list()
  for (const { metadata, status } of items) {
    const conditions = new Map(status?.conditions?.map((condition) => [condition.type, condition.status]))
    assert.equal(conditions.get('Established'), 'True', `${metadata.name}`)
    assert.equal(conditions.get('NonStructuralSchema'), undefined, `${metadata.name}`)
  }
})

for (const name of fixtures.filter((name) => !invalid.includes(name)))
  test(`R0.34 the API server accepts ${name} and keeps every field`, async () => {
    for (const object of await documentsIn(name)) {
      const { status: _, stringData: __, ...sent } = object
      includes(await stored(object), sent)
    }
  })

test('R0.34 an invalid example has its valid form beside it', () => {
  for (const name of invalid) assert.ok(fixtures.includes(name.replace('.invalid.yaml', '.yaml')), name)
})

test('R0.34 a selector that is indented by mistake is a YAML error with its line', async () => {
  await assert.rejects(documentsIn('3-static-identity.invalid.yaml'), (error) => {
    assert.ok(error instanceof YAMLParseError)
    assert.match(error.message, /line 20/)
    return true
  })
})

test('R0.34 allowedNamespaces without a space before its value is refused, naming spec', async () => {
  const [, identity] = await documentsIn('3-controller-identity.invalid.yaml')
  const error = await refusal(identity!)
  assert.equal(fieldsOf(error)[0], 'spec')
  assert.match(error.serverMessage, /must be of type object/)
})

test('R0.34 a role without a spec is refused, naming spec', async () => {
  const [, identity] = await documentsIn('3-cluster-with-role.invalid.yaml')
  assert.match((await refusal(identity!)).serverMessage, /spec: Required value|spec in body must be of type object/)
})

test('R0.34 lists and maps written as text are refused, naming each field and what it takes', async () => {
  const [, identity] = await documentsIn('3-role-identity.invalid.yaml')
  const error = await refusal(identity!)
  assert.match(error.serverMessage, /spec\.allowedNamespaces\.list in body must be of type array/)
  assert.match(error.serverMessage, /spec\.policyARNs in body must be of type array/)
  assert.match(error.serverMessage, /spec\.tags in body must be of type object/)
  assert.match(error.serverMessage, /spec\.transitiveTags in body must be of type array/)
})

test('R0.34 a token secret with an owner that has no kind, and data that is not base64, is refused', async () => {
  const [secret] = await documentsIn('5-token-secret.invalid.yaml')
  assert.match((await refusal(secret!)).serverMessage, /illegal base64 data/)
  const error = await refusal({ ...secret!, data: {} })
  assert.deepEqual(fieldsOf(error), ['metadata.ownerReferences.kind', 'metadata.ownerReferences.uid'])
})

test('R0.34 R2.12 the registrations of the specification are a valid status', async () => {
  const [addOn] = (await documentsIn('2-add-on-registrations.yaml')) as unknown as [ManagedClusterAddOn]
  const addOns = client.of(ManagedClusterAddOn, 'cluster1')
  const { metadata } = await addOns.create(addOn)
  const updated = await addOns.updateStatus({ ...addOn, metadata })
  assert.deepEqual(updated.status?.registrations, addOn.status?.registrations)
})
