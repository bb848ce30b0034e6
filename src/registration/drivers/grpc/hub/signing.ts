import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { label, signer } from '../../../../api/index.ts'
import { CertificateSigningRequest, Secret, type Client } from '../../../../kube/index.ts'
import {
  timestamp,
  waiting,
  watching,
  type Clock,
  type Logger,
  type Manager,
  type Reconcile,
} from '../../../../runtime/index.ts'
import { issue, RequestError, type KeyPair } from '../../../../runtime/pki/index.ts'
import { malformed, stateOf, type CsrState } from '../../csr/index.ts'
import { grpcSecret } from '../contract.ts'

export interface SigningOptions {
  client: Client
  namespace: string
  /** How long certificates last at most. */
  signingMs: number
  clock: Clock
  log: Logger
  requesterOf: (csr: CertificateSigningRequest) => CsrState['requester']
}

/** Clocks differ: a certificate that begins now would not be valid yet for some. */
const earlyMs = 5 * 60_000
/** Other replicas look for a new authority once a minute; before they know it, they would refuse what it signs. */
const knownAfterMs = 3 * 60_000
/** How long the authority's key is kept in memory without asking for it again. */
const keptMs = 30_000

/** Signs certificate requests of `open-cluster-management.io/grpc` that were approved, by a person too, if they are well-formed. */
export const grpcSigning = (manager: Manager, options: SigningOptions): void => {
  const { client, clock, log } = options
  const csrs = manager.informer(CertificateSigningRequest, {
    labelSelector: label.clusterName,
    fieldSelector: `spec.signerName=${signer.grpc}`,
  })
  const authority = authorityIn(options)
  const reconcile: Reconcile = async (name, signal) => {
    const csr = csrs.get(name)
    if (!csr || !isToSign(csr)) return {}
    const state = stateOf(csr, {
      signerName: signer.grpc,
      requester: options.requesterOf(csr),
      managedCluster: () => undefined,
    })
    // Whoever approved it: what is not right is not signed.
    const bad = malformed(state)
    if (bad || state.request instanceof RequestError) {
      const failed = {
        type: 'Failed' as const,
        status: 'True' as const,
        reason: bad!.reason,
        message: bad!.message,
        lastUpdateTime: timestamp(clock.now()),
      }
      await write(
        client,
        { ...csr, status: { ...csr.status, conditions: [...(csr.status?.conditions ?? []), failed] } },
        signal,
      )
      return {}
    }
    const { subject, publicKey } = state.request
    const pair = await authority(signal)
    const now = clock.now()
    const asked = csr.spec.expirationSeconds
    const lifetime = Math.min(options.signingMs, asked === undefined ? Infinity : asked * 1000)
    const end = new X509Certificate(pair.cert).validToDate.getTime()
    const { cert } = issue(pair, {
      commonName: subject.commonName,
      organizations: subject.organizations,
      usages: ['client'],
      notBefore: new Date(now - earlyMs),
      notAfter: new Date(Math.min(now + lifetime, end)),
      publicKey: createPublicKey({ key: publicKey.spki, format: 'der', type: 'spki' }).export({
        type: 'spki',
        format: 'pem',
      }),
    })
    await write(
      client,
      { ...csr, status: { ...csr.status, certificate: Buffer.from(cert).toString('base64') } },
      signal,
    )
    log.info('certificate issued', { csr: name, user: subject.commonName })
    return {}
  }
  manager.controller({ name: 'grpc-signing', reconcile, watches: [watching(csrs)] })
}

const isToSign = ({ metadata, status }: CertificateSigningRequest): boolean =>
  metadata.labels?.[label.addOnName] === undefined &&
  !status?.certificate &&
  (status?.conditions?.some(({ type }) => type === 'Approved') ?? false) &&
  !status!.conditions!.some(({ type }) => type !== 'Approved')

const write = async (client: Client, csr: CertificateSigningRequest, signal: AbortSignal): Promise<void> => {
  await client.of(CertificateSigningRequest).update(csr, { subresource: 'status', signal })
}

/** The authority of the endpoint, whose Secret the endpoint keeps. */
const authorityIn = ({ client, namespace, clock }: SigningOptions): ((signal: AbortSignal) => Promise<KeyPair>) => {
  let kept: { pair: KeyPair; at: number } | undefined
  return async (signal) => {
    if (kept && clock.now() - kept.at < keptMs) return kept.pair
    const secret = await client.of(Secret, namespace).find(grpcSecret, { signal })
    const text = (key: string): string => Buffer.from(secret?.data?.[key] ?? '', 'base64').toString('utf8')
    const certificates = text('ca.crt').match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g) ?? []
    const key = text('ca.key')
    const later = (message: string) =>
      waiting('AuthorityNotReady', {
        message: `Secret ${namespace}/${grpcSecret}: ${message}`,
        next: 'certificates are signed as soon as it is there',
        afterMs: 5000,
      })
    if (!key || certificates.length === 0) throw later('the endpoint has not made its authority yet')
    const own = certificates.find((cert) => new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
    if (!own) throw later('ca.key belongs to no certificate in ca.crt')
    const since = new X509Certificate(own).validFromDate.getTime() + earlyMs
    if (certificates.length > 1 && clock.now() - since < knownAfterMs)
      throw later('its authority is new, and not all replicas know it yet')
    kept = { pair: { cert: own, key }, at: clock.now() }
    return kept.pair
  }
}
