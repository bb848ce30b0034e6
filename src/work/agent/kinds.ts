import { apiVersionOf, KindMapper, type Client, type ServedResource } from '../../kube/index.ts'

/** The kinds that this cluster serves now. What is known is forgotten when a CRD changes or a known kind turns out to be gone. */
export class Kinds {
  readonly #client: Client
  #mapper: KindMapper

  constructor(client: Client) {
    this.#client = client
    this.#mapper = new KindMapper(client)
  }

  forget(): void {
    this.#mapper = new KindMapper(this.#client)
  }

  /** Undefined when it is not served. */
  async ofKind(
    of: { group: string; version: string; kind: string },
    signal: AbortSignal,
  ): Promise<ServedResource | undefined> {
    return this.#mapper.find({ apiVersion: apiVersionOf(of), kind: of.kind }, { signal })
  }

  /** By its plural, at the version it was applied at or any other: a CRD may have dropped the old one. */
  async ofResource(
    of: { group?: string | undefined; version?: string | undefined; resource: string },
    signal: AbortSignal,
  ): Promise<ServedResource | undefined> {
    const { group = '', version, resource } = of
    const at = async (apiVersion: string): Promise<ServedResource | undefined> =>
      (await this.#mapper.served(apiVersion, { signal })).find(({ plural }) => plural === resource)
    const same = version ? await at(apiVersionOf({ group, version })) : undefined
    if (same) return same
    for (const apiVersion of await this.#mapper.groupVersions({ signal })) {
      if (apiVersion.split('/').reverse()[1] === (group || undefined)) {
        const other = await at(apiVersion)
        if (other) return other
      }
    }
    return undefined
  }
}
