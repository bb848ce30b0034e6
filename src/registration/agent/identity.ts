import { stalled } from '../../runtime/index.ts'
import { secretKey } from '../contract.ts'
import type { AgentIdentity, SecretData } from '../drivers/driver.ts'

export interface IdentitySources {
  /** What a person chose. */
  clusterName?: string | undefined
  agentName?: string | undefined
  /** What was used before. */
  secret: SecretData
  /** UID of the kube-system namespace. */
  clusterId: string
  random: () => number
}

const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

export const isDnsLabel = (text: string): boolean => dnsLabel.test(text)

/**
 * Who we are to every hub: what a person chose, else what was used before, else the cluster's own id, so that not even the
 * loss of the secret makes a second cluster. Only the agent's name is random.
 */
export const identityOf = ({ clusterName, agentName, secret, clusterId, random }: IdentitySources): AgentIdentity => ({
  cluster: chosen('cluster', clusterName) ?? before(secret[secretKey.clusterName]) ?? clusterId,
  agent: chosen('agent', agentName) ?? before(secret[secretKey.agentName]) ?? randomName(random),
})

/** The part of the secret that is never lost: it says who we are. */
export const namesOf = ({ cluster, agent }: AgentIdentity): SecretData => ({
  [secretKey.clusterName]: cluster,
  [secretKey.agentName]: agent,
})

const chosen = (what: 'cluster' | 'agent', name: string | undefined): string | undefined => {
  if (name === undefined || name === '' || isDnsLabel(name)) return name || undefined
  throw stalled('InvalidName', {
    message: `${JSON.stringify(name.slice(0, 100))} cannot be the name of ${what === 'cluster' ? 'a managed cluster' : 'an agent'}`,
    next: 'use at most 63 of a-z, 0-9 and "-", not beginning or ending with "-"',
  })
}

// A damaged secret is no reason to stop: the name is looked for in the next place.
const before = (name: string | undefined): string | undefined => (name && isDnsLabel(name) ? name : undefined)

// Without vowels and look-alikes, so that chance writes no words.
const letters = 'bcdfghjklmnpqrstvwxz2456789'
const randomName = (random: () => number): string =>
  Array.from({ length: 5 }, () => letters[Math.floor(random() * letters.length)]).join('')
