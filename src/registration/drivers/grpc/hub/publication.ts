import { code, GrpcError, type ReadEvent } from '../../../../events/index.ts'
import type { Client, KubeObject, Resource } from '../../../../kube/index.ts'
import type { Clock, Logger } from '../../../../runtime/index.ts'
import { shown } from '../../../../runtime/pki/index.ts'
import { refusal, type Authorization } from './authorization.ts'
import type { Broker } from './broker.ts'
import type { Identity } from './identity.ts'
import type { Caches } from './served.ts'
import type { Turns } from './turns.ts'

/** An event that somebody published. */
export interface Publication {
  event: ReadEvent
  who: Identity
  /** What `ce-clustername` says: the cluster of the caller, or the one that a bootstrap user wants to be. */
  cluster: string
  /** The connection that it came over. */
  session: object
  signal: AbortSignal
}

/** What those who act on events use. */
export interface Desk {
  client: Client
  caches: Caches
  access: Authorization
  broker: Broker
  turns: Turns
  clock: Clock
  log: Logger
  /** The set that the hub puts clusters into needs no right to join. */
  gates: { defaultClusterSet: boolean }
}

/** Acts on one kind of event, or throws the refusal. Each asks for exactly the right that it then uses. */
export type Write = (desk: Desk, publication: Publication) => Promise<void>

export const invalid = (message: string): GrpcError => new GrpcError(code.invalidArgument, message)

/** The object in an event, which must be an object with metadata. `kind` says what it should be, and checks nothing of the rest. */
export const objectIn = <T extends KubeObject>(_kind: Resource<T>, { event }: Publication): T => {
  const data = parsed(() => event.data())
  if (!isRecord(data) || !isRecord(data.metadata)) throw invalid('the data is not a Kubernetes object')
  const { name, namespace } = data.metadata
  if (name !== undefined && typeof name !== 'string') throw invalid('metadata.name is not a string')
  if (namespace !== undefined && typeof namespace !== 'string') throw invalid('metadata.namespace is not a string')
  return data as unknown as T
}

export const parsed = <T>(read: () => T): T => {
  try {
    return read()
  } catch (error) {
    if (error instanceof SyntaxError) throw invalid('the data is not JSON')
    throw error
  }
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What is authorized is what is acted on: a payload that speaks of another object than its attributes is refused. */
export const mustBe = (what: string, said: unknown, expected: string): void => {
  if (said === expected) return
  throw refusal(
    'Forbidden',
    403,
    `${what} is ${shown([typeof said === 'string' ? said : (JSON.stringify(said) ?? '')])}, and must be ${shown([expected])}: events speak of their own cluster only`,
  )
}

/** A DNS subdomain, as the kinds that are served here have it. */
const objectName = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

/** The name of an object in a payload, which the attribute repeats where it is given. */
export const nameIn = (object: KubeObject, { event }: { event: Pick<ReadEvent, 'resourceId'> }): string => {
  const { name } = object.metadata
  if (!name) throw invalid('metadata.name is missing')
  if (!objectName.test(name)) throw invalid(`metadata.name ${shown([name])} is no name that an object can have`)
  if (event.resourceId) mustBe('resourceid', event.resourceId, name)
  return name
}

/** The version that a change is based on: without it the last writer would win over the hub's own words. */
export const versionIn = ({ metadata }: KubeObject): string => {
  if (!metadata.resourceVersion || typeof metadata.resourceVersion !== 'string')
    throw invalid('metadata.resourceVersion is missing: send the one that the change is based on')
  return metadata.resourceVersion
}
