import type { AWSCluster } from '../api/index.ts'
import { keyOf, type Condition } from '../kube/index.ts'
import { isTrue } from '../runtime/index.ts'
import { accountRecorded } from './contract.ts'

/** A name that can be had once: what AWS tags are looked up by has the cluster's name in it and no namespace. */
export interface Place {
  account: string
  region: string
  name: string
}

const placeKey = ({ account, region, name }: Place): string => JSON.stringify([account, region, name])

/** Whether a cluster was let into its account. Only the controller writes this: anybody could write `spec.accountID`. */
const wasLetIn = (cluster: AWSCluster & { status?: { conditions?: Condition[] | undefined } | undefined }): boolean =>
  isTrue(cluster, accountRecorded)

/** Who is in which place. What the caches do not show yet is remembered here: two clusters may come in the same moment. */
export class Claims {
  readonly #defaultRegion: string
  readonly #holders = new Map<string, string>()
  readonly #placeOf = new Map<string, string>()

  constructor({ defaultRegion }: { defaultRegion: string }) {
    this.#defaultRegion = defaultRegion
  }

  /** Takes the place, or says which cluster has it. `others` are all clusters of that name that the caches know. */
  take(cluster: AWSCluster, place: Place, others: readonly AWSCluster[]): AWSCluster | undefined {
    const self = keyOf(cluster)
    const key = placeKey(place)
    const rival = others.find(
      (other) => keyOf(other) !== self && this.#holds(other, key, place) && this.#before(other, cluster),
    )
    if (rival) {
      this.leave(self)
      return rival
    }
    if (this.#placeOf.get(self) !== key) this.leave(self)
    this.#holders.set(key, self)
    this.#placeOf.set(self, key)
    return undefined
  }

  /** The cluster is gone, or may not act any more. */
  leave(cluster: string): void {
    const key = this.#placeOf.get(cluster)
    if (key === undefined) return
    this.#placeOf.delete(cluster)
    if (this.#holders.get(key) === cluster) this.#holders.delete(key)
  }

  #holds(other: AWSCluster, key: string, { account, region }: Place): boolean {
    if (this.#holders.get(key) === keyOf(other)) return true
    return other.spec?.accountID === account && (other.spec.region || this.#defaultRegion) === region && wasLetIn(other)
  }

  // Both can be there only if they came in while nobody led, or two led: then the older one stays.
  #before(other: AWSCluster, cluster: AWSCluster): boolean {
    if (!wasLetIn(cluster)) return true
    const age = ({ metadata }: AWSCluster): string => `${metadata.creationTimestamp} ${metadata.uid}`
    return age(other) < age(cluster)
  }
}
