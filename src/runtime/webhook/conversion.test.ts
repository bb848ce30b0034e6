import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Unstructured } from '../../kube/index.ts'
import { silentLogger } from '../log.ts'
import { converting, type ConversionResponse, type Conversions } from './conversion.ts'
import { answerReview } from './review.ts'

const conversions: Conversions = {
  'example.com/Widget': (object, toApiVersion) => {
    const spec = object['spec'] as { size?: string }
    if (spec.size === 'huge') throw new Error('size "huge" is unknown')
    return { ...object, apiVersion: toApiVersion, spec: { length: spec.size } }
  },
  // does everything that a conversion must not do
  'example.com/Vandal': (object) => {
    object.metadata.uid = 'forged'
    object.metadata.finalizers = []
    object.metadata.labels = { 'converted-by': 'vandal' }
    delete object.metadata.annotations
    return { ...object, apiVersion: 'other/v9', kind: 'Other', metadata: { ...object.metadata, name: 'forged' } }
  },
}

const object = (kind: string, name: string, more: object = {}): Unstructured => ({
  apiVersion: 'example.com/v1',
  kind,
  metadata: {
    name,
    namespace: 'ns',
    uid: `uid-${name}`,
    resourceVersion: '7',
    finalizers: ['f'],
    annotations: { a: '1' },
  },
  ...more,
})

const convert = async (objects: unknown, desiredAPIVersion: unknown = 'example.com/v2') => {
  const route = converting(conversions)
  const body = JSON.stringify({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'ConversionReview',
    request: { uid: 'u-1', desiredAPIVersion, objects },
  })
  const signal = new AbortController().signal
  return answerReview(route, body, { path: '/convert', timeoutMs: 8000, signal, log: silentLogger })
}

const responseOf = async (objects: Unstructured[], to?: string): Promise<ConversionResponse> => {
  const answer = await convert(objects, to)
  assert.ok('body' in answer)
  const review = JSON.parse(answer.body) as { response: ConversionResponse & { uid: string } }
  assert.equal(review.response.uid, 'u-1')
  return review.response
}

test('R0.30 a list is converted in its order, and what is in the wanted version already is left alone', async () => {
  const already = { ...object('Widget', 'b'), apiVersion: 'example.com/v2', spec: { length: 'as it is' } }
  const response = await responseOf([
    object('Widget', 'a', { spec: { size: 'small' } }),
    already,
    object('Widget', 'c', { spec: { size: 'large' } }),
  ])
  assert.deepEqual(response.result, { status: 'Success' })
  const [a, b, c] = response.convertedObjects
  assert.deepEqual(a, { ...object('Widget', 'a', { spec: { length: 'small' } }), apiVersion: 'example.com/v2' })
  assert.deepEqual(b, already)
  assert.deepEqual(c, { ...object('Widget', 'c', { spec: { length: 'large' } }), apiVersion: 'example.com/v2' })
})

test('R0.30 whatever a conversion does to metadata, only labels and annotations change', async () => {
  const response = await responseOf([object('Vandal', 'v')])
  const { annotations: _, ...metadata } = object('Vandal', 'v').metadata
  assert.deepEqual(response.convertedObjects, [
    { apiVersion: 'example.com/v2', kind: 'Vandal', metadata: { ...metadata, labels: { 'converted-by': 'vandal' } } },
  ])
})

test('R0.30 one object that fails fails the review, with a message that names it', async () => {
  const response = await responseOf([
    object('Widget', 'good', { spec: { size: 'small' } }),
    object('Widget', 'bad', { spec: { size: 'huge' } }),
  ])
  assert.deepEqual(response, {
    uid: 'u-1',
    convertedObjects: [],
    result: {
      status: 'Failure',
      message: 'Widget ns/bad of example.com/v1 cannot be converted to example.com/v2: size "huge" is unknown',
    },
  })
})

test('R0.30 a kind without a conversion, and another group, are failures', async () => {
  const messageOf = async (one: Unstructured, to?: string): Promise<string> => {
    const { result } = await responseOf([one], to)
    return result.status === 'Failure' ? result.message : 'converted'
  }
  assert.match(await messageOf(object('Gadget', 'g')), /Gadget ns\/g .*no conversion for example\.com\/Gadget/)
  assert.match(await messageOf(object('toString', 't')), /no conversion for example\.com\/toString/)
  assert.match(await messageOf(object('Widget', 'w'), 'other.com/v1'), /the groups differ/)
})

test('R0.30 a conversion review that is not one gets a 400', async () => {
  for (const [objects, to] of [[undefined], [[null]], [[{ kind: 'Widget' }]], [[], 7]] as [unknown, unknown?][]) {
    const answer = await convert(objects, to)
    assert.ok('status' in answer)
    assert.equal(answer.status, 400)
  }
})
