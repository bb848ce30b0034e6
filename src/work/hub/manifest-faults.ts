import type { ManifestWork } from '../../api/index.ts'
import type { ObjectMeta } from '../../kube/index.ts'
import type { Cause } from '../../runtime/webhook/index.ts'
import { manifestBytesLimit } from '../contract.ts'

type Manifests = NonNullable<NonNullable<ManifestWork['spec']['workload']>['manifests']>
/** What may be said of a manifest before it is known to be an object of Kubernetes. */
type Manifest = Record<string, unknown> & { metadata?: ObjectMeta }

/** More faults than this help nobody. */
const mostFaults = 10

/** What is wrong with the manifests of a work, each with its place and what to do. */
export const manifestFaults = (given: Manifests = []): Cause[] => {
  const manifests = given as Manifest[]
  const list = 'spec.workload.manifests'
  if (manifests.length === 0) return [{ field: list, message: 'is empty: a work needs at least one manifest' }]
  const size = manifests.reduce((sum, manifest) => sum + Buffer.byteLength(JSON.stringify(manifest)), 0)
  if (size > manifestBytesLimit) return [{ field: list, message: sizeFault(size, manifests) }]

  const faults: Cause[] = []
  const seen = new Map<string, number>()
  for (const [i, manifest] of manifests.entries()) {
    const fault = faultOf(manifest) ?? twinFault(manifest, i, seen)
    if (fault) faults.push({ field: `${list}[${i}]${fault.field}`, message: fault.message })
    if (faults.length === mostFaults) break
  }
  return faults
}

const sizeFault = (size: number, manifests: readonly Manifest[]): string => {
  const sizes = manifests.map((manifest) => Buffer.byteLength(JSON.stringify(manifest)))
  const largest = sizes.indexOf(Math.max(...sizes.slice(0, 100_000)))
  return `take ${size} bytes, and ${manifestBytesLimit} are allowed: split the work; the largest is manifests[${largest}], with ${sizes[largest]}`
}

const faultOf = (manifest: Manifest): Cause | undefined => {
  const { apiVersion, kind, metadata } = manifest
  if (!isText(apiVersion)) return { field: '.apiVersion', message: 'is missing: say which version of the API it is' }
  if (!isText(kind)) return { field: '.kind', message: 'is missing: say what it is' }
  if (kind.endsWith('List') && Array.isArray(manifest['items']))
    return { field: '.kind', message: `is ${kind}: write each of its items as a manifest of its own` }
  if (metadata?.generateName)
    return {
      field: '.metadata.generateName',
      message: 'cannot be kept up to date, each apply would make another object: give it metadata.name',
    }
  if (!isText(metadata?.name)) return { field: '.metadata.name', message: `is missing: this ${kind} needs a name` }
  return undefined
}

/** Two manifests of one object would be applied in turn for ever. */
const twinFault = (manifest: Manifest, i: number, seen: Map<string, number>): Cause | undefined => {
  const { apiVersion, kind, metadata } = manifest
  const { namespace, name } = metadata!
  const id = JSON.stringify([apiVersion, kind, namespace ?? '', name])
  const twin = seen.get(id)
  if (twin === undefined) {
    seen.set(id, i)
    return undefined
  }
  const where = namespace ? `${namespace}/${name}` : name
  return {
    field: '',
    message: `is ${String(kind)} ${where} of ${String(apiVersion)} like manifests[${twin}]: keep one of them`,
  }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
