import type { Unstructured } from '../../../kube/index.ts'

type Fields = Record<string, unknown>

const rbacGroup = 'rbac.authorization.k8s.io'

/** Fields that are ours even when the manifest leaves them out: what somebody adds there is taken out again. */
const whole: Record<string, readonly string[]> = {
  ConfigMap: ['data', 'binaryData', 'immutable'],
  Secret: ['data', 'immutable'],
  Role: ['rules'],
  ClusterRole: ['rules', 'aggregationRule'],
  RoleBinding: ['subjects'],
  ClusterRoleBinding: ['subjects'],
}

/** Fields that cannot be changed in place: the object is made anew. */
const fixed: Record<string, readonly string[]> = {
  RoleBinding: ['roleRef'],
  ClusterRoleBinding: ['roleRef'],
  Secret: ['type'],
}

const builtIn = new Set([
  'v1',
  'rbac.authorization.k8s.io/v1',
  'apps/v1',
  'batch/v1',
  'apiextensions.k8s.io/v1',
  'apiregistration.k8s.io/v1',
  'admissionregistration.k8s.io/v1',
])

// Somebody's own kind may be called Role as well.
const kindOf = (object: Unstructured): string => (builtIn.has(object.apiVersion ?? '') ? (object.kind ?? '') : '')

/** Whether the object must be deleted and made again to become what is wanted. */
export const mustBeReplaced = (
  desired: Unstructured,
  present: Unstructured,
  differ: (a: unknown, b: unknown) => boolean,
): boolean =>
  (fixed[kindOf(desired)] ?? []).some(
    (field) => desired[field] !== undefined && differ(defaulted(desired[field]), defaulted(present[field])),
  )

// The server fills in the API group of a roleRef.
const defaulted = (value: unknown): unknown => (isRecord(value) ? { apiGroup: rbacGroup, ...value } : value)

/** Everything but metadata and status, as it should be on the cluster. */
export const contentFor = (desired: Unstructured, present: Unstructured): Fields => {
  const kind = kindOf(desired)
  const wanted = (survivors[kind] ?? same)(contentOf(desired), contentOf(present))
  const ours = Object.fromEntries((whole[kind] ?? []).map((field) => [field, undefined]))
  const merged: Fields = { ...contentOf(present), ...ours, ...wanted }
  // The controller manager fills in the rules of a role that gathers others.
  if (kind === 'ClusterRole' && isRecord(wanted['aggregationRule']))
    merged['rules'] = present['rules'] ?? wanted['rules']
  return merged
}

/** What a manifest decides: not metadata, which is shared, nor status. */
export const contentOf = (object: Unstructured): Fields => {
  const { apiVersion: _a, kind: _k, metadata: _m, status: _s, ...content } = object
  return content
}

const same = (desired: Fields): Fields => desired

/** The desired value over the present one: what the manifest does not mention stays. */
export const overlay = (desired: unknown, present: unknown): unknown => {
  if (desired === undefined) return present
  if (Array.isArray(desired) && Array.isArray(present) && desired.length === present.length)
    return desired.map((value, index) => overlay(value, present[index]))
  if (!isRecord(desired) || !isRecord(present)) return desired
  const merged: Fields = { ...present }
  for (const [key, value] of Object.entries(desired)) merged[key] = overlay(value, present[key])
  return merged
}

const overlaySpec = (desired: Fields, present: Fields): Fields => ({
  ...desired,
  spec: overlay(desired['spec'], present['spec']),
})

/** Takes values that the manifest leaves open from the present object. */
const keeping =
  (...paths: string[]) =>
  (desired: Fields, present: Fields): Fields =>
    paths.reduce((result, path) => keepOne(result, present, path.split('.')), desired)

const keepOne = (desired: Fields, present: unknown, [first, ...rest]: string[]): Fields => {
  const value = isRecord(present) ? present[first!] : undefined
  if (value === undefined) return desired
  if (rest.length === 0) return Object.hasOwn(desired, first!) ? desired : { ...desired, [first!]: value }
  const inner = desired[first!]
  return isRecord(inner) ? { ...desired, [first!]: keepOne(inner, value, rest) } : desired
}

/** The same for the elements of a list, found by their name (or port). */
const keepingInEach =
  (list: string, key: string, path: string) =>
  (desired: Fields, present: Fields): Fields => {
    const at = list.split('.')
    const [wanted, there] = [read(desired, at), read(present, at)]
    if (!Array.isArray(wanted) || !Array.isArray(there)) return desired
    const kept = wanted.map((item: unknown) => {
      const twin: unknown = isRecord(item)
        ? there.find((one: unknown) => isRecord(one) && one[key] === item[key])
        : undefined
      return isRecord(item) && isRecord(twin) ? keepOne(item, twin, path.split('.')) : item
    })
    return write(desired, at, kept)
  }

const both =
  (...steps: ((desired: Fields, present: Fields) => Fields)[]) =>
  (desired: Fields, present: Fields): Fields =>
    steps.reduce((result, step) => step(result, present), desired)

const keepReplicas = keeping('spec.replicas')
const keepWebhooks = keepingInEach('webhooks', 'name', 'clientConfig.caBundle')

// The server fills in the API group of subjects; filled in here, a binding compares as equal.
const namedSubjects = (desired: Fields): Fields => {
  const subjects = desired['subjects']
  if (!Array.isArray(subjects)) return desired
  return {
    ...desired,
    subjects: subjects.map((subject: unknown) =>
      isRecord(subject) && subject['kind'] !== 'ServiceAccount' ? { apiGroup: rbacGroup, ...subject } : subject,
    ),
  }
}
const binding = (desired: Fields): Fields => ({ ...namedSubjects(desired), roleRef: defaulted(desired['roleRef']) })

/** What the server or a controller fills in, by kind; it survives unless the manifest says otherwise. */
const survivors: Record<string, (desired: Fields, present: Fields) => Fields> = {
  Namespace: overlaySpec,
  RoleBinding: binding,
  ClusterRoleBinding: binding,
  Pod: overlaySpec,
  Job: overlaySpec,
  PersistentVolume: overlaySpec,
  PersistentVolumeClaim: overlaySpec,
  Deployment: keepReplicas,
  StatefulSet: keepReplicas,
  ReplicaSet: keepReplicas,
  Service: both(
    keeping('spec.clusterIP', 'spec.clusterIPs', 'spec.ipFamilies', 'spec.ipFamilyPolicy', 'spec.healthCheckNodePort'),
    keepingInEach('spec.ports', 'port', 'nodePort'),
  ),
  ServiceAccount: keeping('secrets', 'imagePullSecrets'),
  CustomResourceDefinition: keeping('spec.conversion.webhook.clientConfig.caBundle'),
  APIService: keeping('spec.caBundle'),
  ValidatingWebhookConfiguration: keepWebhooks,
  MutatingWebhookConfiguration: keepWebhooks,
}

const read = (from: unknown, at: readonly string[]): unknown =>
  at.reduce<unknown>((value, key) => (isRecord(value) ? value[key] : undefined), from)

const write = (into: Fields, [first, ...rest]: readonly string[], value: unknown): Fields => ({
  ...into,
  [first!]: rest.length ? write(isRecord(into[first!]) ? (into[first!] as Fields) : {}, rest, value) : value,
})

const isRecord = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
