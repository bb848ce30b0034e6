import { createPublicKey } from 'node:crypto'
import { CertificateSigningRequest } from '../../kube/index.ts'
import { timestamp } from '../../runtime/index.ts'
import { issue, readChain, RequestError, validityOf } from '../../runtime/pki/index.ts'
import { customSubject, type AddOnCsrState } from './csr-checks.ts'
import type { RegistrationRequest } from './definition.ts'
import type { AddOnHub } from './hub.ts'

const dayMs = 24 * 3600_000
/** Clocks differ: a certificate that begins now would not be valid yet for some. */
const earlyMs = 60_000

/** The certificate for a request that was found right: the subject that the definition names, and the key of the request. */
export const signFor = async (
  state: AddOnCsrState,
  wanted: Extract<RegistrationRequest, { type: 'customSigner' }>,
  at: { now: number; signal: AbortSignal },
): Promise<string> => {
  if (state.request instanceof RequestError) throw state.request
  const authority = await wanted.authority!.load(at.signal)
  const { notAfter } = validityOf(readChain(authority.cert))
  if (at.now >= notAfter)
    throw new Error(`the authority in ${wanted.authority!.describedAs} ended at ${timestamp(notAfter)}: replace it`)
  const { user, groups = [], organizationUnits = [] } = customSubject(state, wanted)
  const asked = state.csr.spec.expirationSeconds
  const lifetime = Math.min(wanted.validForMs ?? dayMs, asked === undefined ? Infinity : asked * 1000)
  const publicKey = createPublicKey({ key: state.request.publicKey.spki, format: 'der', type: 'spki' })
  const { cert } = issue(authority, {
    commonName: user,
    organizations: [...groups],
    organizationalUnits: [...organizationUnits],
    dnsNames: state.request.dnsNames,
    usages: ['client'],
    notBefore: new Date(at.now - earlyMs),
    notAfter: new Date(Math.min(at.now + lifetime, notAfter)),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }),
  })
  return cert
}

/** Writes it where the agent looks. */
export const writeCertificate = async (
  hub: AddOnHub,
  csr: CertificateSigningRequest,
  certificate: string,
  signal: AbortSignal,
): Promise<void> => {
  const status = { ...csr.status, certificate: Buffer.from(certificate).toString('base64') }
  await hub.client.of(CertificateSigningRequest).update({ ...csr, status }, { subresource: 'status', signal })
}
