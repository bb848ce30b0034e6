import { ManagedServiceAccount } from '../../api/index.ts'
import { encoded, isAlreadyExists, isForbidden, isInvalid, isNotFound, Secret, type Api } from '../../kube/index.ts'
import { describeError, ownerReference } from '../../runtime/index.ts'
import { contentDigest, managedLabels, mark, tokenKey, tokenSecretType } from '../contract.ts'

export interface Content {
  readonly ca: string | undefined
  readonly token: string
}

/** A Secret of that name is there, and the hub does not let us write it: it is somebody else's. */
export class SecretTaken extends Error {
  override name = 'SecretTaken'
}

/** The Secret as it should be. */
const desired = (of: ManagedServiceAccount, { ca, token }: Content) => ({
  metadata: {
    labels: { ...managedLabels },
    annotations: { [mark.digest]: contentDigest({ ca, token }) },
    ownerReferences: [ownerReference(of, ManagedServiceAccount)],
  },
  data: encoded({ [tokenKey.ca]: ca, [tokenKey.token]: token }),
})

/** Brings the token to the hub. The agent can write token Secrets and read none: the hub watches over what becomes of them. */
export const writeTokenSecret = async (
  hub: Api,
  of: ManagedServiceAccount,
  content: Content,
  { isThere, signal }: { isThere: boolean; signal: AbortSignal },
): Promise<void> => {
  const { name = '', namespace } = of.metadata
  const secrets = hub.of(Secret, namespace)
  const { metadata, data } = desired(of, content)
  const create = async (): Promise<void> => {
    const filled = Object.fromEntries(Object.entries(data).filter((entry): entry is [string, string] => !!entry[1]))
    const object = { metadata: { ...metadata, name, namespace }, type: tokenSecretType, data: filled }
    await secrets.create(object, { signal })
  }
  const patch = async (): Promise<void> => {
    await secrets.patch(name, { merge: { metadata, data } }, { signal })
  }
  try {
    await (isThere ? patch().catch(when(isNotFound, create)) : create().catch(when(isAlreadyExists, patch)))
  } catch (error) {
    if ((isForbidden(error) || isInvalid(error)) && /ValidatingAdmissionPolicy/.test(error.serverMessage))
      throw new SecretTaken(
        `Secret ${namespace}/${name} exists on the hub and is not a token of this object: it is left as it is; delete it there, or choose another name`,
        { cause: error },
      )
    throw error
  }
}

const when =
  (applies: (error: unknown) => boolean, instead: () => Promise<void>) =>
  (error: unknown): Promise<void> => {
    if (!applies(error)) throw error
    return instead()
  }

/** What a failed write means for a person. */
export const whyNoSecret = ({ metadata }: ManagedServiceAccount, error: unknown): string =>
  error instanceof SecretTaken
    ? error.message
    : `Secret ${metadata.namespace}/${metadata.name} could not be written on the hub: ${describeError(error)}`
