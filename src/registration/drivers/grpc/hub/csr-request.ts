import { annotation, label, signer } from '../../../../api/index.ts'
import { code, GrpcError } from '../../../../events/index.ts'
import { CertificateSigningRequest, requesterOf, type Requester } from '../../../../kube/index.ts'
import { firstOf } from '../../../../runtime/index.ts'
import { shown } from '../../../../runtime/pki/index.ts'
import { csrGroupsAnnotation } from '../contract.ts'
import { isDecided } from '../../csr/index.ts'
import { refusal } from './authorization.ts'
import type { Identity } from './identity.ts'
import { isRecord, invalid, mustBe, nameIn, objectIn, type Write } from './publication.ts'
import { csrsOf } from './served.ts'

/** Requests that nobody has decided about yet, for one cluster or one of its add-ons. Agents keep to ten themselves. */
const mostOpen = 10

interface CsrWish {
  name: string
  cluster: string
  addOn: string | undefined
  signerName: unknown
  who: Identity
}

/** Why the hub does not ask for this certificate in its own name, whoever wants it. */
const refusals = firstOf<CsrWish>([
  // Names are shared by all clusters: nobody may take one that another would use.
  ({ name, cluster, addOn }) =>
    !name.startsWith(addOn === undefined ? `${cluster}-` : `addon-${cluster}-`) && {
      reason: 'ForeignName',
      message: `the name of a request begins with ${addOn === undefined ? '' : 'addon-'}${cluster}-, and this one is ${shown([name])}`,
    },
  ({ addOn, signerName, who }) =>
    addOn === undefined &&
    signerName !== signer.grpc && {
      reason: 'ForeignSigner',
      message: `${who.username} is known here by certificates of ${signer.grpc}, and asks for one of ${shown([String(signerName)])}`,
    },
  ({ addOn, who }) =>
    addOn !== undefined &&
    who.cluster === undefined && {
      reason: 'NoCluster',
      message: `only a cluster asks for certificates of its add-ons`,
    },
  // Others of Kubernetes are approved by who asks, and that would be the hub.
  ({ addOn, signerName }) =>
    addOn !== undefined &&
    (signerName === signer.grpc ||
      (String(signerName).startsWith('kubernetes.io/') && signerName !== signer.kubeApiServerClient)) && {
      reason: 'ForeignSigner',
      message: `an add-on gets no certificate of ${shown([String(signerName)])}`,
    },
])

/** Makes the request in the hub's name, and writes down in whose name it was asked for. */
export const createCsr: Write = async (desk, publication) => {
  const { who, cluster, signal } = publication
  const said = objectIn(CertificateSigningRequest, publication)
  const name = nameIn(said, publication)
  mustBe(`the label ${label.clusterName}`, said.metadata.labels?.[label.clusterName], cluster)
  const addOn = said.metadata.labels?.[label.addOnName]
  if (addOn !== undefined && typeof addOn !== 'string') throw invalid(`the label ${label.addOnName} is not a string`)
  if (!isRecord(said.spec)) throw invalid('spec is missing')
  const { request, signerName, usages, expirationSeconds } = said.spec
  await desk.access.demand(who, {
    cluster,
    verb: 'create',
    group: 'certificates.k8s.io',
    resource: 'certificatesigningrequests',
  })
  const refused = refusals({ name, cluster, addOn, signerName, who })
  if (refused) throw refusal('Forbidden', 403, refused.message)
  if (addOn !== undefined && !desk.caches.addOns.get(`${cluster}/${addOn}`))
    throw refusal('Forbidden', 403, `cluster ${cluster} has no add-on ${shown([addOn])}`)
  const open = csrsOf(desk.caches, cluster).filter(
    (csr) => csr.metadata.labels?.[label.addOnName] === addOn && !isDecided(csr),
  )
  if (open.length >= mostOpen)
    throw new GrpcError(
      code.resourceExhausted,
      `${open.length} certificate requests of cluster ${cluster} are open already: somebody has to decide about them first`,
    )
  await desk.client.of(CertificateSigningRequest).create(
    {
      metadata: {
        name,
        labels: { [label.clusterName]: cluster, ...(addOn === undefined ? {} : { [label.addOnName]: addOn }) },
        annotations: { [annotation.csrUser]: who.username, [csrGroupsAnnotation]: JSON.stringify(who.groups) },
      },
      spec: { request, signerName, usages, expirationSeconds },
    },
    { signal },
  )
}

/**
 * Who asked for a certificate: the identity that the endpoint saw, if the endpoint made the request. Anybody else who may create
 * requests can write the same annotations, and is who the API server says.
 */
export const requesterBehind =
  (endpoint: string) =>
  (csr: CertificateSigningRequest): Requester => {
    const by = requesterOf(csr)
    const user = csr.metadata.annotations?.[annotation.csrUser]
    if (by.username !== endpoint || !user) return by
    return { username: user, groups: groupsIn(csr.metadata.annotations?.[csrGroupsAnnotation]) }
  }

const groupsIn = (text: string | undefined): string[] => {
  try {
    const groups: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(groups) ? groups.filter((one) => typeof one === 'string') : []
  } catch {
    return []
  }
}
