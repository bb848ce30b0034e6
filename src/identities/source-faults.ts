import type { AWSClusterRoleIdentity } from '../api/index.ts'
import { longestChainedSeconds } from '../aws/index.ts'
import type { Cause } from '../runtime/webhook/index.ts'
import { sourceOf, type Directory } from './chain.ts'
import { describeReference, identityKey, longestChain, singleton, type IdentityReference } from './contract.ts'

/** What is wrong with the source of a role: it would come back to itself, or lead too far. What is not there yet is a warning. */
export const sourceFaults = (
  directory: Pick<Directory, 'identity'>,
  role: AWSClusterRoleIdentity,
): { causes: Cause[]; warnings: string[] } => {
  const field = 'spec.sourceIdentityRef'
  const self = { kind: 'AWSClusterRoleIdentity', name: role.metadata.name ?? '' }
  const path = [self]
  const say = () => path.map(describeReference).join(' ← ')
  let next: IdentityReference | undefined = sourceOf(self, role)
  while (next) {
    const reference: IdentityReference = next
    const key = identityKey(reference, '')
    const loops = path.some((one) => identityKey(one, '') === key)
    path.push(reference)
    if (loops)
      return {
        causes: [{ field, message: `the chain comes back to where it was: ${say()}; name another source` }],
        warnings: [],
      }
    if (path.length > longestChain)
      return {
        causes: [
          { field, message: `the chain has more than ${longestChain} links: ${say()}; name a source that is nearer` },
        ],
        warnings: [],
      }
    if (reference.kind === 'AWSClusterControllerIdentity' && reference.name !== singleton)
      return {
        causes: [{ field: `${field}.name`, message: `the only AWSClusterControllerIdentity is ${singleton}` }],
        warnings: [],
      }
    const identity = directory.identity(key)
    if (!identity && reference.kind !== 'AWSClusterControllerIdentity')
      return {
        causes: [],
        warnings: [
          `${field}: ${describeReference(reference)} does not exist yet: clusters wait for it`,
          ...durationWarnings(role),
        ],
      }
    next = identity && sourceOf(reference, identity)
  }
  return { causes: [], warnings: durationWarnings(role) }
}

const durationWarnings = ({ spec }: AWSClusterRoleIdentity): string[] =>
  spec.sourceIdentityRef?.kind === 'AWSClusterRoleIdentity' && (spec.durationSeconds ?? 0) > longestChainedSeconds
    ? [
        `spec.durationSeconds: sessions will last ${longestChainedSeconds} s: AWS gives no more to a role that is assumed from a role`,
      ]
    : []
