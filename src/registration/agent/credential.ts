import type { Reason } from '../../runtime/index.ts'
import { secretKey } from '../contract.ts'
import type { SecretData } from '../drivers/driver.ts'
import type { AgentState } from './phases.ts'

/** Why the credential in the secret cannot be used; undefined when it can. */
export const unusable = ({ settings, secret, identity, refused }: AgentState): Reason | undefined => {
  const { driver, clock } = settings
  if (!secret.exists) return { reason: 'SecretMissing', message: `${secret.source} does not exist` }
  if (refused && stillHolds(secret.data, refused))
    return { reason: 'CredentialRefused', message: `the hub refuses the credential in ${secret.source}` }
  return driver.unusable(secret.data, { identity, now: clock.now() })
}

const notCredential = new Set<string>([secretKey.kubeconfig, secretKey.clusterName, secretKey.agentName])

/** Whether what was refused is still what is there. A driver may have put more beside it. */
const stillHolds = (data: SecretData, refused: SecretData): boolean =>
  Object.entries(refused).every(([key, value]) => notCredential.has(key) || data[key] === value)
