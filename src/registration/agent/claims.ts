import type { ClusterClaim } from '../../api/index.ts'
import { idClaim } from '../contract.ts'

/** A fact of the cluster as it stands in the ManagedCluster's status. */
export interface Claim {
  name: string
  value: string
}

export interface ClaimRules {
  /** How many claims that are not reserved go to the hub. */
  maxCustom: number
  /** Claims whose names end so are never cut off. */
  reservedSuffixes: readonly string[]
}

/** On a ClusterClaim that is nobody's business but the cluster's. */
export const spokeOnly = 'open-cluster-management.io/spoke-only'

const reserved = new Set([
  idClaim,
  'kubeversion.open-cluster-management.io',
  'platform.open-cluster-management.io',
  'product.open-cluster-management.io',
])

/** What the hub is told: the id first of all, reserved claims, then as many others as allowed. `left` names what was cut off. */
export const claimsFor = (
  clusterId: string,
  present: readonly ClusterClaim[],
  { maxCustom, reservedSuffixes }: ClaimRules,
): { claims: Claim[]; left: string[] } => {
  const isReserved = ({ name }: Claim): boolean =>
    reserved.has(name) || reservedSuffixes.some((suffix) => name.endsWith(suffix))
  // The id is a fact of the cluster, not an opinion: a ClusterClaim of that name does not change it.
  const told = [
    { name: idClaim, value: clusterId },
    ...present.map(claimOf).filter((claim): claim is Claim => claim !== undefined && claim.name !== idClaim),
  ]
  const custom = told.filter((claim) => !isReserved(claim)).toSorted(byName)
  return {
    claims: [...told.filter(isReserved).toSorted(byName), ...custom.slice(0, maxCustom)],
    left: custom.slice(maxCustom).map(({ name }) => name),
  }
}

const claimOf = ({ metadata, spec }: ClusterClaim): Claim | undefined =>
  metadata.name && spec?.value && metadata.labels?.[spokeOnly] === undefined
    ? { name: metadata.name, value: spec.value }
    : undefined

// By code point, as the Go agent sorts: a locale would give another order on another machine.
const byName = (a: Claim, b: Claim): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)
