import type { Secret } from '../kube/index.ts'
import type { Validate } from '../runtime/webhook/index.ts'
import { secretFaults } from './access-keys.ts'

/** A Secret whose type says that it is an access key is one, or is not stored. */
export const validateSecret: Validate<Secret> = ({ object: secret }) => {
  if (!secret || secret.metadata.deletionTimestamp) return undefined
  const causes = secretFaults(secret)
  if (causes.length === 0) return undefined
  return { reason: 'Invalid', message: causes.map((c) => `${c.field}: ${c.message}`).join('; '), causes }
}
