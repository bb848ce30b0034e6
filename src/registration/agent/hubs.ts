import type { Reason } from '../../runtime/index.ts'
import type { HubAddress, SecretData } from '../drivers/driver.ts'

/** A bootstrap secret, and where it leads or what is wrong with it. */
export interface Candidate {
  /** Namespace and name of the secret. */
  readonly source: string
  readonly bootstrap?: SecretData | undefined
  readonly address?: HubAddress | undefined
  readonly problem?: string | undefined
}

/** A hub to go to. Without `bootstrap` the only way in is the credential that we have. */
export interface ChosenHub {
  readonly address: HubAddress
  readonly bootstrap?: SecretData | undefined
}

/** Which hubs failed us, and when: they are left alone for a while. By source. */
export type Failures = ReadonlyMap<string, Reason & { readonly at: number }>

export interface HubQuestion {
  /** In order of preference. */
  candidates: readonly Candidate[]
  /** The hub that the credential in our secret is for, if there is one. */
  current?: HubAddress | undefined
  /** Whether that credential can be used. */
  usable: boolean
  failures: Failures
  now: number
  /** How long a hub that failed is left alone while there are others. */
  restMs: number
}

/** The hub to go to, or what is missing to go anywhere. */
export const chooseHub = (question: HubQuestion): { hub: ChosenHub } | { missing: string } => {
  const { candidates, current, failures, usable } = question
  const open = candidates.filter((c): c is Candidate & { address: HubAddress } => c.address !== undefined)
  const rested = open.filter((candidate) => !resting(candidate, question))
  const chosen =
    rested.find(({ address }) => current !== undefined && plain(address.server) === plain(current.server)) ??
    rested[0] ??
    // All of them failed: the one that had the longest rest. Giving up is no choice.
    open.toSorted((a, b) => (failures.get(a.source)?.at ?? 0) - (failures.get(b.source)?.at ?? 0))[0]
  if (chosen) return { hub: { address: chosen.address, bootstrap: chosen.bootstrap } }
  // Bootstrap secrets may be gone once they have served: the credential itself knows its hub.
  if (current && usable && candidates.every(({ bootstrap }) => bootstrap === undefined))
    return { hub: { address: current } }
  return { missing: candidates.map(({ problem }) => problem).join('; ') }
}

const resting = ({ source }: Candidate, { failures, now, restMs }: HubQuestion): boolean => {
  const failed = failures.get(source)
  return failed !== undefined && now - failed.at < restMs
}

/** Whether a credential for one is a credential for the other. A new CA behind an old address is another hub. */
export const sameHub = (a: HubAddress | undefined, b: HubAddress): boolean =>
  a !== undefined && plain(a.server) === plain(b.server) && (a.ca ?? '').trim() === (b.ca ?? '').trim()

const plain = (server: string): string => server.replace(/\/+$/, '')
