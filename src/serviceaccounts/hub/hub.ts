import {
  label,
  ManagedCluster,
  ManagedClusterAddOn,
  ManagedClusterSet,
  ManagedClusterSetBinding,
  ManagedServiceAccount,
  ProxyManagedServiceAccount,
} from '../../api/index.ts'
import { keyOf, Secret, type Api } from '../../kube/index.ts'
import { Freshest, type Clock, type Informer, type Logger, type Manager } from '../../runtime/index.ts'
import { addOnName, contentDigest, mark, parentLabel, tokenKey } from '../contract.ts'

/** What is kept of a token Secret: never the token. */
export interface SeenSecret extends Secret {
  /** What there was to be seen in its data. */
  seen?: { digest: string; otherKeys: string[] }
}

/** What the parts of this room share. */
export interface Hub {
  readonly client: Api
  readonly manager: Manager
  readonly clock: Clock
  readonly log: Logger
  readonly accounts: Informer<ManagedServiceAccount>
  readonly proxies: Informer<ManagedServiceAccount>
  readonly secrets: Informer<SeenSecret>
  readonly clusters: Informer<ManagedCluster>
  readonly sets: Informer<ManagedClusterSet>
  readonly bindings: Informer<ManagedClusterSetBinding>
  /** Those of this add-on alone. */
  readonly addOns: Informer<ManagedClusterAddOn>
  /** What our last write of an object answered. */
  readonly written: Freshest<ManagedServiceAccount>
  /** UIDs of token Secrets as they were while they had their label: one that was taken over is known by it. */
  readonly secretUids: Map<string, string>
  /** Since when Secrets have a content that their agent has not reported. */
  readonly unconfirmedSince: Map<string, number>
  /** When the counts of objects for sets were last written. */
  readonly countedAt: Map<string, number>
}

/** Names of indexes. */
export const index = { parent: 'parent' } as const

export const fieldManager = 'lanyard-serviceaccounts'

/** Reads a Secret and forgets its token. */
export const seenSecret = (secret: Secret): SeenSecret => {
  const { data = {}, ...rest } = secret
  const text = (key: string): string | undefined =>
    data[key] === undefined ? undefined : Buffer.from(data[key], 'base64').toString('utf8')
  const known: string[] = Object.values(tokenKey)
  return {
    ...rest,
    seen: {
      digest: contentDigest({ ca: text(tokenKey.ca), token: text(tokenKey.token) }),
      otherKeys: Object.keys(data).filter((key) => !known.includes(key)),
    },
  }
}

/** `namespace/name` of the object that one was made from, if any. */
export const parentKeyOf = ({ metadata }: ManagedServiceAccount): string | undefined =>
  metadata.annotations?.[mark.parent]

const parentsOf = (account: ManagedServiceAccount): string[] =>
  [parentKeyOf(account), account.metadata.labels?.[parentLabel]].filter((one) => one !== undefined)

// Not `label=true`: a cache that keeps whole Secrets may exist beside this one, and the two must not be shared.
const tokenSecrets = `${label.isManagedServiceAccount} in (true)`

export const hubFor = (manager: Manager, options: { client: Api; clock: Clock; log: Logger }): Hub => {
  const secretUids = new Map<string, string>()
  const secrets = manager.informer<SeenSecret>(Secret, { labelSelector: tokenSecrets, transform: seenSecret })
  const note = (secret: SeenSecret): void => void secretUids.set(keyOf(secret), secret.metadata.uid!)
  secrets.on({ added: note, updated: note })
  const accounts = manager.informer(ManagedServiceAccount, { indexes: { [index.parent]: parentsOf } })
  const written = new Freshest<ManagedServiceAccount>()
  // What is gone must not live on in what we wrote.
  accounts.on({ deleted: (account) => written.forget(keyOf(account)) })
  return {
    ...options,
    manager,
    accounts,
    proxies: manager.informer(ProxyManagedServiceAccount),
    secrets,
    clusters: manager.informer(ManagedCluster),
    sets: manager.informer(ManagedClusterSet),
    bindings: manager.informer(ManagedClusterSetBinding),
    addOns: manager.informer(ManagedClusterAddOn, { fieldSelector: `metadata.name=${addOnName}` }),
    written,
    secretUids,
    unconfirmedSince: new Map(),
    countedAt: new Map(),
  }
}

/** The object as it is now, ours where the cache is behind. */
export const currentAccount = (hub: Hub, key: string): ManagedServiceAccount | undefined =>
  hub.written.of(key, hub.accounts.get(key))
