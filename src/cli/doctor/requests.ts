import { label } from '../../api/index.ts'
import type { CertificateSigningRequest } from '../../kube/index.ts'
import { pendingKey, secretKey } from '../../registration/contract.ts'
import { known, perhaps } from './faults.ts'
import { hubOf, type Snapshot } from './snapshot.ts'

/** The certificate requests of the cluster itself, the newest first. */
export const requestsOf = (s: Snapshot): CertificateSigningRequest[] =>
  ofCluster(s, known(hubOf(s).requests)).toSorted((a, b) => createdAt(b) - createdAt(a))

const ofCluster = ({ name }: Snapshot, all: readonly CertificateSigningRequest[]): CertificateSigningRequest[] =>
  all.filter(({ metadata }) => metadata.labels?.[label.clusterName] === name)

const createdAt = ({ metadata }: CertificateSigningRequest): number => Date.parse(metadata.creationTimestamp ?? '') || 0

export const saysOf = ({ status }: CertificateSigningRequest, type: 'Approved' | 'Denied' | 'Failed') =>
  status?.conditions?.find((one) => one.type === type)

/** Those that nobody has answered. */
export const openRequests = (s: Snapshot): CertificateSigningRequest[] =>
  ofCluster(s, perhaps(s.hub?.requests) ?? []).filter(({ status }) => !status?.conditions?.length)

/** The request that the agent waits for, as its own secret says. */
export const pendingRequestIn = ({ managed }: Snapshot): string | undefined =>
  perhaps(managed?.credential)?.[pendingKey.csr]

export const agentNameIn = ({ managed }: Snapshot): string | undefined =>
  perhaps(managed?.credential)?.[secretKey.agentName]

/** The request that counts: the one that the agent waits for, else the newest. */
export const currentRequest = (s: Snapshot): CertificateSigningRequest | undefined => {
  const all = requestsOf(s)
  const own = pendingRequestIn(s)
  return all.find(({ metadata }) => metadata.name === own) ?? all[0]
}
