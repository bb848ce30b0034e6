import { createHash } from 'node:crypto'
import { AppliedManifestWork, type ManifestWork } from '../../api/index.ts'
import type { ObjectMeta, Unstructured } from '../../kube/index.ts'
import { firstOf, type Check } from '../../runtime/index.ts'
import { rankOf } from './order.ts'

export type WorkSpec = ManifestWork['spec']
export type ManifestConfig = NonNullable<WorkSpec['manifestConfigs']>[number]
export type ResourceIdentifier = ManifestConfig['resourceIdentifier']

/** One object of a work, as it is wanted on this cluster. */
export interface Manifest {
  /** Its place in the work. */
  readonly ordinal: number
  readonly rank: number
  /** What nobody else in the work may be: group, kind, namespace and name. */
  readonly id: string
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly namespace: string | undefined
  readonly name: string
  /** Without what only a server writes. */
  readonly object: Unstructured
  readonly hash: string
  /** Why it cannot be applied, whatever the cluster is like. */
  readonly problem: string | undefined
}

/** What is asked of a manifest before anything is looked up. */
const checks: Check<Record<string, unknown>>[] = [
  (m) => !isText(m['apiVersion']) && { reason: 'NoApiVersion', message: 'it has no apiVersion: add one, such as v1' },
  (m) => !isText(m['kind']) && { reason: 'NoKind', message: 'it has no kind: add one, such as ConfigMap' },
  (m) =>
    Array.isArray(m['items']) &&
    String(m['kind']).endsWith('List') && {
      reason: 'IsList',
      message: 'it is a list: put each of its items into the work as a manifest of its own',
    },
  (m) =>
    !isText(metadataOf(m).name) && {
      reason: 'NoName',
      message: metadataOf(m).generateName
        ? 'it has a generateName, with which it would be made again and again: give it a name'
        : 'it has no metadata.name: add one',
    },
  (m) =>
    m['kind'] === AppliedManifestWork.kind &&
    String(m['apiVersion']).startsWith(`${AppliedManifestWork.group}/`) && {
      reason: 'OwnRecord',
      message: 'an AppliedManifestWork is the record that the agent itself keeps: a work cannot deliver one',
    },
]
const problemOf = firstOf(checks)

/** Reads the manifest at a place of the work; never throws, for one that is broken must not hinder the others. */
export const readManifest = (source: unknown, ordinal: number): Manifest => {
  const raw = isRecord(source) ? source : {}
  const problem = problemOf(raw)?.message
  const metadata = metadataOf(raw)
  const [version = '', group = ''] = textOf(raw['apiVersion']).split('/').reverse()
  const kind = textOf(raw['kind'])
  const { name = '', namespace } = metadata
  const object = cleaned(raw, metadata)
  return {
    ordinal,
    rank: rankOf(kind),
    id: problem === undefined ? `${group}/${kind}/${namespace ?? ''}/${name}` : `broken/${ordinal}`,
    group,
    version,
    kind,
    namespace: namespace || undefined,
    name: textOf(name),
    object,
    hash: hashOf(object),
    problem,
  }
}

/** A second manifest for the same object would only be in the way of the first. */
export const duplicateOf = (first: Manifest): string =>
  `it is the same object as manifest ${first.ordinal}: keep one of the two`

/** A fingerprint of anything that is JSON. */
export const hashOf = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('base64')

/** `ConfigMap shop/settings`, for messages. */
export const nameOf = (of: { kind: string; namespace?: string | undefined; name: string; ordinal?: number }): string =>
  of.kind && of.name
    ? `${of.kind} ${of.namespace ? `${of.namespace}/` : ''}${of.name}`
    : `manifest ${of.ordinal ?? ''} (${of.kind || 'no kind'})`

/** How the work wants this object to be kept: what names it exactly goes before what matches it. */
export const configFor = (spec: WorkSpec, of: Required<ResourceIdentifier>): Partial<ManifestConfig> => {
  const configs = spec.manifestConfigs ?? []
  const same = configs.find(({ resourceIdentifier }) => isExactly(resourceIdentifier, of))
  return same ?? configs.find(({ resourceIdentifier }) => matches(resourceIdentifier, of)) ?? {}
}

/** Whether the object stays when the work goes. */
export const staysBehind = (spec: WorkSpec, of: Required<ResourceIdentifier>): boolean => {
  const { propagationPolicy = 'Foreground', selectivelyOrphans } = spec.deleteOption ?? {}
  if (propagationPolicy !== 'SelectivelyOrphan') return propagationPolicy === 'Orphan'
  return (selectivelyOrphans?.orphaningRules ?? []).some((rule) => isExactly(rule, of))
}

const isExactly = (rule: ResourceIdentifier, of: Required<ResourceIdentifier>): boolean =>
  (rule.group ?? '') === of.group &&
  rule.resource === of.resource &&
  (rule.namespace ?? '') === of.namespace &&
  rule.name === of.name

const matches = (rule: ResourceIdentifier, of: Required<ResourceIdentifier>): boolean =>
  (rule.group ?? '') === of.group &&
  rule.resource === of.resource &&
  wildcard(rule.namespace ?? '', of.namespace ?? '') &&
  wildcard(rule.name, of.name)

const wildcard = (pattern: string, text: string): boolean => {
  const parts = pattern.split('*')
  if (parts.length === 1) return pattern === text
  const [first, end] = [parts[0]!, parts.at(-1)!]
  if (!text.startsWith(first) || !text.endsWith(end) || text.length < first.length + end.length) return false
  // No RegExp: a pattern of many stars must not cost more than one walk over the text.
  let at = first.length
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return at <= text.length - end.length
}

const cleaned = (raw: Record<string, unknown>, metadata: ObjectMeta): Unstructured => {
  const { status: _, stringData, ...rest } = raw
  const { name, namespace, labels, annotations, finalizers, ownerReferences } = metadata
  const kept = { name, namespace, labels, annotations, finalizers, ownerReferences }
  const object: Unstructured = {
    ...rest,
    metadata: Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined)),
  }
  // The server turns stringData into data, and would look different from the manifest for ever.
  if (raw['kind'] === 'Secret' && isRecord(stringData))
    object['data'] = { ...(rest['data'] as object), ...encoded(stringData) }
  else if (stringData !== undefined) object['stringData'] = stringData
  return object
}

const encoded = (data: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(String(value)).toString('base64')]))

const metadataOf = (raw: Record<string, unknown>): ObjectMeta => (isRecord(raw['metadata']) ? raw['metadata'] : {})
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
