import { label } from '../../api/index.ts'
import { decoded, effective, encoded, isAlreadyExists, isNotFound, Secret, type Client } from '../../kube/index.ts'
import { Freshest, Informer, waiting, type Clock, type Logger } from '../../runtime/index.ts'
import { credentialOfLabel } from '../contract.ts'
import type { Content, Present } from '../drivers/index.ts'

export interface CredentialSecretsOptions {
  local: Client
  /** Which agent they belong to: several may serve one cluster, each for its own hub. */
  owner: string
  clock: Clock
  log: Logger
}

export interface Place {
  readonly addOn: string
  readonly namespace: string
  readonly secret: string
}

/** The secrets with add-ons' credentials, wherever they are on this cluster. What we wrote is known before the watch tells of it. */
export class CredentialSecrets {
  readonly informer: Informer<Secret>
  readonly #options: CredentialSecretsOptions
  readonly #written = new Freshest<Secret>()

  constructor(options: CredentialSecretsOptions) {
    const { local, owner, clock, log } = options
    this.#options = options
    const labelSelector = `${credentialOfLabel}=${owner}`
    this.informer = new Informer({ client: local, resource: Secret, labelSelector, clock, log })
    this.informer.addIndex('addOn', (secret) => [addOnOf(secret)])
    this.informer.on({ deleted: ({ metadata }) => this.#written.forget(`${metadata.namespace}/${metadata.name}`) })
  }

  /** What the add-on has there, or what it had elsewhere when it moves. */
  async present(place: Place, signal: AbortSignal): Promise<Present | undefined> {
    const { namespace, secret: name } = place
    const known = this.#at(place) ?? this.of(place.addOn).find(({ metadata }) => metadata.name === name)
    // One that another agent left has no label of ours: its credential may still be good.
    const found = known ?? this.#mine(await this.#options.local.of(Secret, namespace).find(name, { signal }))
    return found && { data: decoded(found)!, annotations: found.metadata.annotations ?? {} }
  }

  has(place: Place): boolean {
    return this.#at(place) !== undefined
  }

  /** All of one add-on. */
  of(addOn: string): Secret[] {
    return this.informer.by('addOn', addOn)
  }

  /** Brings a secret to this content; other keys stay. Nothing is sent when nothing differs. */
  async write(place: Place, { data, annotations }: Content, signal: AbortSignal): Promise<void> {
    const { local } = this.#options
    const secrets = local.of(Secret, place.namespace)
    const key = `${place.namespace}/${place.secret}`
    const metadata = { labels: this.#labels(place.addOn), annotations: { ...annotations } }
    let present = this.#at(place)
    try {
      if (!present) {
        const object = {
          metadata: { name: place.secret, namespace: place.namespace, ...given(metadata) },
          type: 'Opaque',
        }
        const created = await secrets.create({ ...object, data: defined(encoded(data)) }, { signal })
        this.#written.wrote(key, undefined, created)
        return
      }
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
      present = this.#mine(await secrets.get(place.secret, { signal }))!
    }
    const change = changeOf(present, { data, annotations }, metadata.labels)
    if (!change) return
    try {
      this.#written.wrote(key, present, await secrets.patch(place.secret, { merge: change }, { signal }))
    } catch (error) {
      if (isNotFound(error)) this.#written.forget(key)
      throw error
    }
  }

  /** Takes one away; it may be gone already. Only the one that was seen: another may have its name by now. */
  async remove({ metadata }: Secret, signal: AbortSignal): Promise<void> {
    const { uid, name, namespace } = metadata
    this.#written.forget(`${namespace}/${name}`)
    await this.#options.local.of(Secret, namespace).delete(name!, { preconditions: { uid }, signal })
  }

  #at({ namespace, secret }: Place): Secret | undefined {
    const key = `${namespace}/${secret}`
    return this.#written.of(key, this.informer.get(key))
  }

  /** Two agents that write one secret would go on for ever. */
  #mine(secret: Secret | undefined): Secret | undefined {
    const keeper = secret?.metadata.labels?.[credentialOfLabel]
    if (!keeper || keeper === this.#options.owner) return secret
    const { namespace, name } = secret.metadata
    throw waiting('KeptByAnotherAgent', {
      message: `the agent in namespace ${keeper} keeps secret ${namespace}/${name} for another hub`,
      next: 'install the add-on in another namespace, or delete the secret if that agent is gone',
      afterMs: 60_000,
    })
  }

  #labels(addOn: string): Record<string, string> {
    return { [credentialOfLabel]: this.#options.owner, [label.addOnName]: addOn }
  }
}

/** The add-on that a secret belongs to. */
export const addOnOf = ({ metadata }: Secret): string => metadata.labels?.[label.addOnName] ?? ''

const changeOf = (
  present: Secret,
  { data, annotations }: Content,
  labels: Record<string, string>,
): object | undefined => {
  const keys = encoded(effective(data, decoded(present)!))
  const notes = nulled(effective(annotations, present.metadata.annotations ?? {}))
  const marks = effective(labels, present.metadata.labels ?? {})
  const isEmpty = [keys, notes, marks].every((part) => Object.keys(part).length === 0)
  return isEmpty ? undefined : { data: keys, metadata: { annotations: notes, labels: marks } }
}

const nulled = (values: Readonly<Record<string, string | undefined>>): Record<string, string | null> =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, value ?? null]))

const defined = (values: Record<string, string | null | undefined>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))

const given = ({
  labels,
  annotations,
}: {
  labels: Record<string, string>
  annotations: Record<string, string | undefined>
}) => ({
  labels,
  annotations: defined(annotations),
})
