import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Unstructured } from '../../kube/index.ts'
import { manifestBytesLimit } from '../contract.ts'
import { manifestFaults } from './manifest-faults.ts'

const config = (name: string, more: object = {}): Unstructured => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  ...more,
})
const at = (i: number, field = '') => `spec.workload.manifests[${i}]${field}`
const faults = (...manifests: object[]) =>
  manifestFaults(manifests as Unstructured[]).map(({ field, message }) => `${field} ${message}`)

test('a work with good manifests has no fault: same names of other kinds, groups or namespaces are other objects', () => {
  const other = { ...config('a'), metadata: { name: 'a', namespace: 'other' } }
  const secret = { ...config('a'), kind: 'Secret' }
  assert.deepEqual(faults(config('a'), config('b'), other, secret, { ...config('a'), apiVersion: 'x.example/v1' }), [])
})

test('each manifest that cannot be applied is named with its place and what to do', () => {
  assert.deepEqual(faults(), ['spec.workload.manifests is empty: a work needs at least one manifest'])
  assert.deepEqual(
    faults(
      { kind: 'ConfigMap', metadata: { name: 'a' } },
      config('a'),
      { apiVersion: 'v1', metadata: { name: 'a' } },
      { apiVersion: 'v1', kind: 'ConfigMap' },
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'a-' } },
      { apiVersion: 'v1', kind: 'List', metadata: {}, items: [config('z')] },
      config('a'),
    ),
    [
      `${at(0, '.apiVersion')} is missing: say which version of the API it is`,
      `${at(2, '.kind')} is missing: say what it is`,
      `${at(3, '.metadata.name')} is missing: this ConfigMap needs a name`,
      `${at(4, '.metadata.generateName')} cannot be kept up to date, each apply would make another object: give it metadata.name`,
      `${at(5, '.kind')} is List: write each of its items as a manifest of its own`,
      `${at(6)} is ConfigMap default/a of v1 like manifests[1]: keep one of them`,
    ],
  )
})

test('manifests of more than the limit are refused with the largest of them, in bytes as they are sent', () => {
  const text = 'ü'.repeat(manifestBytesLimit / 2 - 60)
  assert.deepEqual(faults(config('big', { data: { text } })), [])
  const [fault] = faults(config('small'), config('big', { data: { text: `${text}ü` } }))
  assert.match(
    fault!,
    /^spec\.workload\.manifests take \d+ bytes, and 512000 are allowed: split the work; the largest is manifests\[1\], with \d+$/,
  )
})

test('10,000 bad manifests are answered quickly with the first ten faults', () => {
  assert.equal(faults(...Array.from({ length: 10_000 }, () => ({ kind: 'X' }))).length, 10)
})
