import { apiVersionOf, isAlreadyExists, keyOf, type Api, type KubeObject, type Resource } from '../kube/index.ts'
import { differs, Freshest } from '../runtime/index.ts'

/** A generation that was written, as status keeps it. */
export interface Generation {
  group: string
  version?: string | undefined
  resource: string
  namespace?: string | undefined
  name: string
  lastGeneration: number
}

export interface WorkloadOptions {
  /** What status says of our last writes. */
  generations: readonly Generation[] | undefined
  signal: AbortSignal
}

/**
 * Makes Deployments and CronJobs exactly what they should be. The server fills in defaults, so that a field that somebody
 * added cannot be told from one of those by looking; but each change of a spec raises the generation, and ours is remembered.
 */
export class Workloads {
  readonly #client: Api
  readonly #written = new Freshest<KubeObject>()

  constructor(client: Api) {
    this.#client = client
  }

  /** The object as it is now, and the generation to remember. */
  async apply<T extends KubeObject>(
    of: Resource<T>,
    cache: { get(key: string): T | undefined },
    desired: T,
    { generations, signal }: WorkloadOptions,
  ): Promise<{ object: T; generation: Generation }> {
    const { name, namespace } = desired.metadata
    const id = { group: of.group, version: of.version, resource: of.plural, namespace, name: name! }
    const last = generations?.find((g) => g.resource === of.plural && g.namespace === namespace && g.name === name)
    const object = await this.#write(of, cache, desired, last?.lastGeneration, signal)
    return { object, generation: { ...id, lastGeneration: object.metadata.generation ?? 0 } }
  }

  async #write<T extends KubeObject>(
    of: Resource<T>,
    cache: { get(key: string): T | undefined },
    desired: T,
    lastGeneration: number | undefined,
    signal: AbortSignal,
  ): Promise<T> {
    const key = keyOf(desired)
    const id = `${apiVersionOf(of)} ${of.kind} ${key}`
    const objects = this.#client.of(of, desired.metadata.namespace)
    const write = { fieldManager: 'lanyard-operator', signal }
    const cached = cache.get(key)
    let present = this.#written.of(id, cached) as T | undefined
    try {
      if (!present) {
        try {
          return this.#written.wrote(id, cached, await objects.create(desired, write)) as T
        } catch (error) {
          if (!isAlreadyExists(error)) throw error
          present = await objects.get(desired.metadata.name!, { signal })
        }
      }
      if (present.metadata.generation === lastGeneration && !differs(desired, present)) return present
      const metadata = {
        ...present.metadata,
        labels: { ...present.metadata.labels, ...desired.metadata.labels },
        annotations: { ...present.metadata.annotations, ...desired.metadata.annotations },
      }
      return this.#written.wrote(id, present, await objects.update({ ...present, ...desired, metadata }, write)) as T
    } catch (error) {
      this.#written.forget(id)
      throw error
    }
  }
}
