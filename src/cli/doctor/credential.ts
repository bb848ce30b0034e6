import { X509Certificate } from 'node:crypto'
import type { SecretData } from '../../kube/index.ts'
import { secretKey } from '../../registration/contract.ts'
import { known, perhaps } from './faults.ts'
import { managedOf, type Snapshot } from './snapshot.ts'

/** From when to when the agent's certificate is good; undefined when it has none, or one that cannot be read. */
export const validityIn = (data: SecretData): { from: number; until: number } | undefined => {
  const pem = data[secretKey.certificate]
  if (!pem) return undefined
  try {
    const { validFrom, validTo } = new X509Certificate(pem)
    return { from: Date.parse(validFrom), until: Date.parse(validTo) }
  } catch {
    return { from: 0, until: 0 } // as good as expired
  }
}

/** Whether the agent has what it needs to go to its hub without the bootstrap secret. */
export const hasCredential = (s: Snapshot): boolean => {
  const data = known(managedOf(s).credential)
  if (!data?.[secretKey.kubeconfig]) return false
  const validity = validityIn(data)
  return validity === undefined || validity.until > s.now
}

/** The hub did not know the agent's own credential when it was tried. */
export const isRefused = ({ managed }: Snapshot): boolean => perhaps(managed?.ownWay)?.kind === 'refused'
