import { ConfigMap, isAlreadyExists, isConflict, isForbidden, type Api } from '../../../kube/index.ts'
import { stalled, waiting } from '../../../runtime/index.ts'
import { changedMapRoles, isMapped, MapRolesError, readMapRoles } from './map-roles.ts'
import type { Mapping } from './wanted.ts'

export const awsAuthNamespace = 'kube-system'
export const awsAuthName = 'aws-auth'
const where = `ConfigMap ${awsAuthNamespace}/${awsAuthName}`

interface Edit {
  set?: Mapping | undefined
  remove?: string | undefined
  done: PromiseWithResolvers<void>
}

type Parsed = Awaited<ReturnType<typeof readMapRoles>>

/**
 * The ConfigMap by which the authenticator knows roles. All clusters share it, and so do others: what is to be changed while a
 * write is under way goes into the next one, each is made of what is there at that moment, and one that somebody else came
 * before is made again.
 */
export class AwsAuth {
  readonly #client: Api
  readonly #pending: Edit[] = []
  #writing = false
  /** As it was last seen, by a watch or in an answer. */
  #latest: { version: string | undefined; roles: Promise<Parsed> } = { version: undefined, roles: readMapRoles('') }

  constructor(client: Api) {
    this.#client = client
  }

  /** Tells it of a state that a watch has brought. */
  see(object: ConfigMap | undefined): void {
    const version = object?.metadata.resourceVersion
    if (version !== undefined && Number(version) < Number(this.#latest.version ?? 0)) return // older than our own write
    if (version === this.#latest.version && version !== undefined) return
    const roles = readMapRoles(object?.data?.['mapRoles'] ?? '')
    roles.catch(() => {}) // it is told to whoever asks
    this.#latest = { version, roles }
  }

  /** Whether the last known state has exactly this mapping for its role. */
  async has(mapping: Mapping): Promise<boolean> {
    try {
      return isMapped(await this.#latest.roles, mapping)
    } catch {
      return false // whoever tries to write it says why
    }
  }

  set(mapping: Mapping, signal: AbortSignal): Promise<void> {
    return this.#edit({ set: mapping }, signal)
  }

  remove(roleArn: string, signal: AbortSignal): Promise<void> {
    return this.#edit({ remove: roleArn }, signal)
  }

  #edit(edit: Omit<Edit, 'done'>, signal: AbortSignal): Promise<void> {
    const done = Promise.withResolvers<void>()
    this.#pending.push({ ...edit, done })
    if (!this.#writing) void this.#write(signal)
    return done.promise
  }

  async #write(signal: AbortSignal): Promise<void> {
    this.#writing = true
    while (this.#pending.length > 0) {
      const edits = this.#pending.splice(0)
      try {
        await this.#apply(edits, signal)
        for (const { done } of edits) done.resolve()
      } catch (error) {
        for (const { done } of edits) done.reject(explained(error))
      }
    }
    this.#writing = false
  }

  async #apply(edits: readonly Edit[], signal: AbortSignal): Promise<void> {
    const objects = this.#client.of(ConfigMap, awsAuthNamespace)
    const change = { set: edits.flatMap((edit) => edit.set ?? []), remove: edits.flatMap((edit) => edit.remove ?? []) }
    for (;;) {
      const present = await objects.find(awsAuthName, { signal })
      const text = present?.data?.['mapRoles'] ?? ''
      const mapRoles = await changedMapRoles(text, change)
      if (mapRoles === text) return this.see(present)
      const metadata = { name: awsAuthName, namespace: awsAuthNamespace }
      try {
        const written = present
          ? await objects.update(
              { ...present, data: { ...present.data, mapRoles } },
              { fieldManager: 'lanyard', signal },
            )
          : await objects.create({ metadata, data: { mapRoles } }, { fieldManager: 'lanyard', signal })
        return this.see(written)
      } catch (error) {
        if (!isConflict(error) && !isAlreadyExists(error)) throw error
      }
    }
  }
}

const explained = (error: unknown): unknown => {
  if (error instanceof MapRolesError)
    return waiting('AwsAuthUnreadable', {
      message: `mapRoles of ${where} cannot be read: ${error.message}`,
      next: `mend it, and nothing of it is lost: kubectl -n ${awsAuthNamespace} edit configmap ${awsAuthName}`,
      afterMs: 60_000,
      cause: error,
    })
  if (isForbidden(error))
    return stalled('AwsAuthForbidden', {
      message: `${where} may not be written: ${error.serverMessage}`,
      next: `whoever lets clusters in needs get, list, watch, create and update for it`,
      cause: error,
    })
  return error
}
