import { createHash, randomBytes, type X509Certificate } from 'node:crypto'
import { code, GrpcError, type Call } from '../../../../events/index.ts'
import { resource, type Api, type KubeObject, type Requester } from '../../../../kube/index.ts'
import type { Clock } from '../../../../runtime/index.ts'
import { readChain } from '../../../../runtime/pki/index.ts'
import { clustersOf, type Identity } from './identity.ts'
import { Remembered } from './remembered.ts'

interface TokenReview extends KubeObject {
  spec: { token: string }
  status?: { authenticated?: boolean; error?: string; user?: Partial<Requester> }
}
const TokenReview = resource<TokenReview>({
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenReview',
  plural: 'tokenreviews',
  namespaced: false,
})

const unauthenticated = (message: string): GrpcError => new GrpcError(code.unauthenticated, message)

/** How long the API server's word about a token counts, and how long nothing is asked about one that it refused. */
const tokenTrustedMs = 60_000
const tokenRefusedMs = 10_000
/** A subscription by token is checked anew after this at the latest: tokens have no end that can be seen from outside. */
const tokenSubscriptionMs = 30 * 60_000

/** Says who calls: by token if there is one, else by certificate. Throws when it is nobody. */
export class Authentication {
  readonly #client: Pick<Api, 'of'>
  readonly #clock: Clock
  readonly #tokens: Remembered<Identity | undefined>
  // Keys of the cache are worth nothing to whoever reads this process's memory later.
  readonly #salt = randomBytes(16)
  readonly #certificates = new WeakMap<X509Certificate, Identity>()

  constructor(client: Pick<Api, 'of'>, clock: Clock) {
    this.#client = client
    this.#clock = clock
    this.#tokens = new Remembered({ clock, most: 10_000 })
  }

  async identify({ authorization, peer }: Pick<Call, 'authorization' | 'peer'>): Promise<Identity> {
    const identity = authorization === undefined ? this.#byCertificate(peer) : await this.#byToken(authorization)
    if (this.#clock.now() >= identity.expiresAt)
      throw unauthenticated(`the certificate of ${identity.username} has expired: renew it, and check the clock`)
    return identity
  }

  #byCertificate({ certificate, refused }: Call['peer']): Identity {
    if (refused)
      throw unauthenticated(
        `the client certificate is not accepted (${refused}): it must be one that this hub has issued for gRPC and that has not expired`,
      )
    if (!certificate) throw unauthenticated('neither a client certificate nor a token: send one of them')
    const known = this.#certificates.get(certificate)
    if (known) return known
    const [leaf] = readChain(String(certificate))
    const { commonName, organizations } = leaf!.subject
    if (!commonName) throw unauthenticated('the client certificate names nobody: its common name is empty')
    const identity = identityOf({ username: commonName, groups: organizations }, leaf!.notAfter)
    this.#certificates.set(certificate, identity)
    return identity
  }

  async #byToken(authorization: string): Promise<Identity> {
    const token = /^Bearer +(\S+)$/i.exec(authorization)?.[1]
    if (!token) throw unauthenticated('the metadata "authorization" is not "Bearer <token>"')
    const key = createHash('sha256').update(this.#salt).update(token).digest('base64')
    const found = await this.#tokens.get(key, async () => {
      const identity = await this.#review(token)
      return { value: identity, forMs: identity ? tokenTrustedMs : tokenRefusedMs }
    })
    if (!found)
      throw unauthenticated(
        'the API server does not accept the token: it has expired, was revoked, or is for another cluster',
      )
    return { ...found, expiresAt: this.#clock.now() + tokenSubscriptionMs }
  }

  async #review(token: string): Promise<Identity | undefined> {
    const { status } = await this.#client.of(TokenReview).create({ metadata: {}, spec: { token } })
    const { username, uid, groups = [], extra } = status?.user ?? {}
    if (!status?.authenticated || !username) return undefined
    return identityOf({ username, groups, ...(uid ? { uid } : {}), ...(extra ? { extra } : {}) }, Infinity)
  }
}

const identityOf = (who: Requester & { groups: string[] }, expiresAt: number): Identity => {
  const clusters = clustersOf(who.groups)
  if (clusters.length > 1)
    throw unauthenticated(`${who.username} has the groups of several clusters, and may act for none`)
  // As the API server counts everybody whom it knows.
  const groups = [...new Set([...who.groups, 'system:authenticated'])]
  return { ...who, groups, cluster: clusters[0], expiresAt }
}
