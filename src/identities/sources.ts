import { createHmac, randomBytes } from 'node:crypto'
import { AwsError, type Credentials, type ObjectReference, type TokenWanted } from '../aws/index.ts'
import { isAlreadyExists, isNotFound, Secret, ServiceAccount, type Api } from '../kube/index.ts'
import { accessKeyOf, secretFaults } from './access-keys.ts'

const keyOfReference = ({ namespace, name }: ObjectReference): string => `${namespace}/${name}`

/** Reads access keys from Secrets, each time they are needed, and remembers of each only enough to notice that it is another one. */
export class AccessKeys {
  readonly #client: Pick<Api, 'of'>
  // With a key of this process: not even who reads its memory could try out secrets against these.
  readonly #salt = randomBytes(32)
  readonly #seen = new Map<string, string>()

  constructor(client: Pick<Api, 'of'>) {
    this.#client = client
  }

  async read(reference: ObjectReference, signal?: AbortSignal): Promise<Credentials> {
    const key = keyOfReference(reference)
    try {
      const credentials = await this.#read(reference, signal)
      this.#seen.set(key, this.#digest(credentials))
      return credentials
    } catch (error) {
      this.#seen.set(key, 'none')
      throw error
    }
  }

  /** Whether a Secret that was read before holds something else now. A new label is no reason to ask AWS anew. */
  async differs(reference: ObjectReference, signal?: AbortSignal): Promise<boolean> {
    const key = keyOfReference(reference)
    const before = this.#seen.get(key)
    if (before === undefined) return false
    await this.read(reference, signal).catch(() => undefined)
    return this.#seen.get(key) !== before
  }

  /** Nobody refers to it any more. */
  forget(reference: ObjectReference): void {
    this.#seen.delete(keyOfReference(reference))
  }

  #digest(credentials: Credentials): string {
    return createHmac('sha256', this.#salt).update(JSON.stringify(credentials)).digest('base64')
  }

  async #read({ namespace, name }: ObjectReference, signal?: AbortSignal): Promise<Credentials> {
    const secret = await this.#client.of(Secret, namespace).find(name, { signal })
    if (!secret)
      throw sourceFailed(
        `secret ${namespace}/${name} does not exist`,
        `create it with AccessKeyID and SecretAccessKey: it is read at once`,
      )
    const faults = secretFaults(secret)
    if (faults.length > 0)
      throw sourceFailed(
        `secret ${namespace}/${name} is no access key: ${faults.map((f) => `${f.field} ${f.message}`).join('; ')}`,
        'correct the secret: it is read again at once',
      )
    return accessKeyOf(secret)
  }
}

interface TokenRequest {
  status?: { token?: string }
}

/** Tokens for service accounts. One that does not exist is made: the token is all that it is for. */
export const accountTokens =
  (client: Pick<Api, 'of'>) =>
  async ({ account, audiences, expirationSeconds }: TokenWanted, signal?: AbortSignal): Promise<string> => {
    const { namespace, name } = account
    const accounts = client.of(ServiceAccount, namespace)
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences, ...(expirationSeconds ? { expirationSeconds } : {}) },
    }
    const request = () => accounts.subresource<TokenRequest>(name, 'token', { method: 'POST', body }, { signal })
    const { status } = await request().catch(async (error: unknown) => {
      if (!isNotFound(error)) throw error
      await accounts.create({ metadata: { namespace, name } }, { signal }).catch((failure: unknown) => {
        if (!isAlreadyExists(failure)) throw failure
      })
      return request()
    })
    if (status?.token) return status.token
    throw sourceFailed(`the API server gave no token for service account ${namespace}/${name}`, 'look at its log')
  }

const sourceFailed = (message: string, next: string): AwsError =>
  new AwsError({ reason: 'SourceFailed', message, next })
