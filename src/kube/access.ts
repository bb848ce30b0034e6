import type { Api } from './api.ts'
import { SubjectAccessReview, type CertificateSigningRequest, type ResourceAttributes } from './builtin.ts'
import type { CallOptions } from './client.ts'

/** Who wants to do something, as the API server authenticated them. */
export interface Requester {
  username: string
  uid?: string
  groups?: string[]
  extra?: Record<string, string[]>
}

/** The authenticated user of a CSR that came over the Kubernetes API. */
export const requesterOf = ({ spec }: CertificateSigningRequest): Requester => ({
  username: spec.username ?? '',
  ...(spec.uid && { uid: spec.uid }),
  ...(spec.groups && { groups: spec.groups }),
  ...(spec.extra && { extra: spec.extra }),
})

/** Whether somebody may do something, as the API server's authorizers see it now. */
export const mayAccess = async (
  client: Pick<Api, 'of'>,
  who: Requester,
  what: ResourceAttributes,
  { signal }: Pick<CallOptions, 'signal'> = {},
): Promise<boolean> => {
  const { username: user, ...rest } = who
  const review = { metadata: {}, spec: { user, ...rest, resourceAttributes: what } }
  const { status } = await client.of(SubjectAccessReview).create(review, { signal })
  return status?.allowed === true
}
