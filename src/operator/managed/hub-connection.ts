import { X509Certificate } from 'node:crypto'
import { decoded, type Secret, type SecretData } from '../../kube/index.ts'
import type { ConditionState } from '../../runtime/index.ts'
import { secretKey, secretName } from '../../registration/contract.ts'
import { Agent } from '../conditions.ts'
import type { Place } from './place.ts'

/** What is known of an agent's way to its hub. */
export interface HubConnection {
  readonly place: Place
  readonly clusterName: string | undefined
  /** Undefined when there are several, whose names are not ours to read. */
  readonly bootstrap: Secret | 'several' | undefined
  readonly hub: Secret | undefined
  readonly now: number
}

/** Whether the agent has a credential for its hub, and what is missing if not. `changesAt`: when time alone changes that. */
export const hubConnection = (of: HubConnection): { state: ConditionState; changesAt?: number | undefined } => {
  const data = decoded(of.hub) ?? {}
  const { HubConnectionDegraded } = Agent
  const cluster = data[secretKey.clusterName] ?? of.clusterName
  const expiresAt = expiryIn(data)
  if (data[secretKey.kubeconfig] && (expiresAt === undefined || expiresAt > of.now)) {
    const message = `cluster ${cluster} has a credential for its hub`
    return { state: HubConnectionDegraded.functional(message), changesAt: expiresAt }
  }
  if (of.bootstrap === undefined) {
    const secret = `${of.place.namespace}/${secretName.bootstrap}`
    const next = 'on the hub run: clusteradm get token; then run here the clusteradm join command that it prints'
    return { state: HubConnectionDegraded.bootstrapMissing(`secret ${secret} does not exist; ${next}`) }
  }
  if (data[secretKey.kubeconfig])
    return {
      state: HubConnectionDegraded.expired(
        `the credential of cluster ${cluster} expired; the agent asks for a new one`,
      ),
    }
  const next = cluster ? `on the hub run: clusteradm accept --clusters ${cluster}` : 'its log says what for'
  return { state: HubConnectionDegraded.waiting(`the agent waits for its hub; ${next}`) }
}

const expiryIn = (data: SecretData): number | undefined => {
  const pem = data[secretKey.certificate]
  if (!pem) return undefined
  try {
    return Date.parse(new X509Certificate(pem).validTo)
  } catch {
    return 0 // what cannot be read is as good as expired
  }
}
