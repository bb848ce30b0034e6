import { code, dataType, GrpcError, makeEvent } from '../../../../events/index.ts'
import { apiVersionOf, resource, ServiceAccount, type KubeObject } from '../../../../kube/index.ts'
import { invalid, isRecord, mustBe, nameIn, objectIn, type Write } from './publication.ts'

interface TokenRequest extends KubeObject {
  spec?: unknown
  status?: { token?: string }
}
const TokenRequest = resource<TokenRequest>({
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenRequest',
  plural: 'tokenrequests',
  namespaced: true,
})

/** Tokens live in the answer alone: it goes to whoever asked, and is kept nowhere. */
export const requestToken: Write = async (desk, publication) => {
  const { event, who, cluster, session, signal } = publication
  const said = objectIn(TokenRequest, publication)
  const { namespace, uid } = said.metadata
  const name = nameIn(said, { event: { ...event, resourceId: '' } })
  if (!uid || typeof uid !== 'string') throw invalid('metadata.uid is missing: the id by which the answer is known')
  mustBe('metadata.namespace', namespace, cluster)
  if (event.resourceId) mustBe('resourceid', event.resourceId, uid)
  if (!isRecord(said.spec)) throw invalid('spec is missing')
  await desk.access.demand(who, {
    cluster,
    verb: 'create',
    resource: 'serviceaccounts',
    subresource: 'token',
    namespace: cluster,
    name,
  })
  const listeners = desk.broker.asking({ who, session, cluster, dataType: dataType.tokenRequests })
  if (listeners.length === 0)
    throw new GrpcError(
      code.failedPrecondition,
      `nobody listens for the answer: subscribe to ${dataType.tokenRequests} first`,
    )
  const body = { apiVersion: apiVersionOf(TokenRequest), kind: TokenRequest.kind, metadata: {}, spec: said.spec }
  const answer = await desk.client
    .of(ServiceAccount, cluster)
    .subresource<KubeObject>(name, 'token', { method: 'POST', body }, { signal })
  const data = { ...answer, metadata: { ...answer.metadata, name, namespace: cluster, uid } }
  desk.broker.answer(
    listeners,
    makeEvent({
      dataType: dataType.tokenRequests,
      side: 'spec',
      action: 'create_request',
      source: 'kube',
      cluster,
      resourceId: uid,
      data,
      now: desk.clock.now(),
    }),
  )
}
