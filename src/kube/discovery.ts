import { orAborted } from './abort.ts'
import type { CallOptions, Client } from './client.ts'
import { isNotFound } from './errors.ts'
import type { KubeObject } from './objects.ts'
import type { Resource } from './resource.ts'

interface ApiResourceList {
  resources?: { name: string; kind: string; namespaced: boolean; verbs: string[]; group?: string; version?: string }[]
}

interface ApiGroupList {
  groups: { name: string; versions: { version: string }[]; preferredVersion: { version: string } }[]
}

/** A kind as the server describes it. */
export interface ServedResource extends Resource {
  readonly verbs: string[]
}

/** Finds where kinds live, asking the server once for each group and version. */
export class KindMapper {
  readonly #client: Client
  readonly #known = new Map<string, Promise<ServedResource[]>>()

  constructor(client: Client) {
    this.#client = client
  }

  /** The resource of an object that names its apiVersion and kind; undefined when the server does not serve it. */
  async find(of: { apiVersion: string; kind: string }, options: CallOptions = {}): Promise<ServedResource | undefined> {
    const before = this.#known.get(of.apiVersion)
    const found = ofKind(of.kind, await this.served(of.apiVersion, options))
    if (found || !before) return found
    // A CRD may have been installed since we asked. Of many who ask for it now, the first asks the server.
    if (this.#known.get(of.apiVersion) === before) this.#known.delete(of.apiVersion)
    return ofKind(of.kind, await this.served(of.apiVersion, options))
  }

  /** Like `find` for a whole object, with an error that says what is missing. */
  async of(object: KubeObject, options: CallOptions = {}): Promise<ServedResource> {
    const { apiVersion, kind } = object
    if (!apiVersion || !kind)
      throw new Error(`object ${object.metadata?.name ?? '(without a name)'} has no apiVersion or kind: add both`)
    const found = await this.find({ apiVersion, kind }, options)
    if (found) return found
    throw new Error(
      `${this.#client.connection.server} does not serve ${kind} of ${apiVersion}: install its CRD, or check the spelling`,
    )
  }

  /** Everything in one group and version; empty when the server does not have it. */
  async served(apiVersion: string, options: CallOptions = {}): Promise<ServedResource[]> {
    const known = this.#known.get(apiVersion)
    if (known) return orAborted(known, options.signal)
    // Others may wait for the same answer: the signal of the first must not end it for all.
    const asked = this.#ask(apiVersion, options.timeoutMs)
    this.#known.set(apiVersion, asked)
    asked.catch(() => this.#known.get(apiVersion) === asked && this.#known.delete(apiVersion))
    return orAborted(asked, options.signal)
  }

  /** The groups and versions that are served, the preferred version of each first. */
  async groupVersions(options: CallOptions = {}): Promise<string[]> {
    const { groups } = await this.#client.json<ApiGroupList>({ method: 'GET', path: '/apis', ...options })
    const ofGroup = groups.map((group) => {
      const preferred = group.preferredVersion.version
      const others = group.versions.map((v) => v.version).filter((v) => v !== preferred)
      return [preferred, ...others].map((version) => `${group.name}/${version}`)
    })
    return ['v1', ...ofGroup.flat()]
  }

  async #ask(apiVersion: string, timeoutMs: number | undefined): Promise<ServedResource[]> {
    // It may come from a manifest that anybody wrote, and becomes part of a path.
    const [, group = '', version] = /^(?:([a-z0-9.-]+)\/)?([a-z0-9]+)$/.exec(apiVersion) ?? []
    if (!version) return []
    const path = group ? `/apis/${group}/${version}` : `/api/${version}`
    const { resources } = await this.#client
      .json<ApiResourceList>({ method: 'GET', path, timeoutMs })
      .catch((error: unknown): ApiResourceList => {
        if (isNotFound(error)) return {}
        throw error
      })
    return (resources ?? [])
      .filter((r) => !r.name.includes('/')) // subresources are listed as `plural/sub`
      .map(({ name, kind, namespaced, verbs }) => ({ group, version, kind, plural: name, namespaced, verbs }))
  }
}

const ofKind = (kind: string, served: ServedResource[]): ServedResource | undefined =>
  served.find((one) => one.kind === kind)
