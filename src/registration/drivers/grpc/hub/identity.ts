import { subject } from '../../../../api/index.ts'
import type { Requester } from '../../../../kube/index.ts'

/** Who calls, as the endpoint has authenticated it. */
export interface Identity extends Requester {
  groups: string[]
  /** The cluster whose credential it is; undefined for a bootstrap user, which has none yet. */
  cluster?: string | undefined
  /** Milliseconds; from then on nothing is done in its name. */
  expiresAt: number
}

/** The clusters that groups speak for. A credential of an honest cluster has one. */
export const clustersOf = (groups: readonly string[]): string[] => {
  const names = groups
    .filter((group) => group !== subject.managedClusters)
    .map((group) => /^(?:system:)?open-cluster-management:([^:]+)$/.exec(group)?.[1])
    .filter((name) => name !== undefined)
  return [...new Set(names)]
}
