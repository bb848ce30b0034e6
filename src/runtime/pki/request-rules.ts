import { firstOf, type Check, type Reason } from '../checks.ts'
import { readRequest, RequestError, type ReadRequest } from './read-request.ts'

/** A CertificateSigningRequest for a client, and what was read from it. */
export interface RequestState {
  csr: { spec: { usages?: string[] | undefined } }
  request: ReadRequest | RequestError
}

/** The request in a CSR, whatever it is: what cannot be read is an answer too. */
export const readSafely = (base64: string): ReadRequest | RequestError => {
  try {
    return readRequest(Buffer.from(base64, 'base64').toString('latin1'))
  } catch (error) {
    if (error instanceof RequestError) return error
    throw error
  }
}

/** A rule about what the request holds; one that cannot be read is judged by other rules. */
export const requested =
  <S extends RequestState>(check: (request: ReadRequest, state: S) => Reason | false): Check<S> =>
  (state) =>
    !(state.request instanceof RequestError) && check(state.request, state)

/** Text from elsewhere, made safe to show. */
export const shown = (values: readonly string[]): string =>
  values.map((value) => JSON.stringify(value.slice(0, 80))).join(', ')

/** Why nobody should sign this, whoever asks: it is malformed, weakly keyed, or its subject is more than names and groups. */
export const unsound = firstOf<RequestState>([
  ({ request }) => request instanceof RequestError && { reason: `Request${request.reason}`, message: request.message },
  requested(
    (request) =>
      !request.signatureValid && {
        reason: 'BadSignature',
        message: 'the request is not signed by its own key, or with an algorithm that is not accepted',
      },
  ),
  requested(
    ({ publicKey }) =>
      !isStrong(publicKey) && {
        reason: 'WeakKey',
        message: `the key (${publicKey.kind}, ${publicKey.bits} bits) is none of: ECDSA on P-256, P-384 or P-521, Ed25519, RSA of 2048 to 8192 bits`,
      },
  ),
  requested(
    (request) =>
      request.subject.others.length > 0 && {
        reason: 'UnexpectedSubject',
        message: `the subject has attributes besides O and CN: ${request.subject.others.join(', ')}`,
      },
  ),
  requested(({ subject: { organizations } }) => {
    const double = organizations.filter((one, index) => organizations.indexOf(one) !== index)
    return (
      double.length > 0 && { reason: 'RepeatedOrganization', message: `an organization is repeated: ${shown(double)}` }
    )
  }),
])

/** Why a certificate for a client must not have all that is asked for besides its subject; `dnsNames` are those that it may have. */
export const excessive = (dnsNames: readonly string[] = []) =>
  firstOf<RequestState>([
    requested((request) => {
      const { ipAddresses, emails, uris } = request
      const names = [...request.dnsNames.filter((name) => !dnsNames.includes(name)), ...ipAddresses, ...emails, ...uris]
      return (
        names.length + request.others > 0 && {
          reason: 'UnexpectedAlternativeNames',
          message: `it asks for alternative names${names.length > 0 ? `: ${shown(names.slice(0, 5))}` : ''}`,
        }
      )
    }),
    requested(({ otherExtensions, otherAttributes }) => {
      const asked = [...otherExtensions, ...otherAttributes]
      return (
        asked.length > 0 && {
          reason: 'UnexpectedExtensions',
          message: `it asks for extensions or attributes that an agent does not need: ${asked.slice(0, 5).join(', ')}`,
        }
      )
    }),
    ({ csr }) => {
      const foreign = (csr.spec.usages ?? []).filter((usage) => !clientUsages.has(usage))
      return foreign.length > 0 && { reason: 'UnexpectedUsages', message: `it asks for the usages ${shown(foreign)}` }
    },
    ({ csr }) =>
      !csr.spec.usages?.includes('client auth') && {
        reason: 'NotForClients',
        message: 'it does not ask for the usage "client auth"',
      },
  ])

const clientUsages: ReadonlySet<string> = new Set(['digital signature', 'key encipherment', 'client auth'])

const isStrong = ({ kind, bits }: ReadRequest['publicKey']): boolean => {
  if (kind === 'rsa') return bits >= 2048 && bits <= 8192
  return (kind === 'ec' && bits > 0) || kind === 'ed25519'
}
