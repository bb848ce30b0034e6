import { X509Certificate, type KeyObject } from 'node:crypto'
import { read } from './der.ts'
import { readPem } from './pem.ts'
import { children, readName, type ReadSubject } from './read-name.ts'

/** What a certificate says, in the parts that decide whether it can be used. */
export interface ReadCertificate {
  subject: ReadSubject
  publicKey: KeyObject
  /** Milliseconds. */
  notBefore: number
  notAfter: number
}

/** The certificates of a PEM chain, leaf first. Throws when there is none or one cannot be read. */
export const readChain = (pem: string): ReadCertificate[] => {
  const blocks = readPem(pem)
  if (!blocks?.length || blocks.some(({ label }) => label !== 'CERTIFICATE'))
    throw new RangeError('not a PEM chain of certificates')
  return blocks.map(({ der }) => {
    const certificate = new X509Certificate(der)
    return {
      subject: subjectOf(der),
      publicKey: certificate.publicKey,
      notBefore: certificate.validFromDate.getTime(),
      notAfter: certificate.validToDate.getTime(),
    }
  })
}

/** From when to when all of a chain is valid: the latest beginning and the earliest end. */
export const validityOf = (chain: readonly ReadCertificate[]): { notBefore: number; notAfter: number } => ({
  notBefore: Math.max(...chain.map((one) => one.notBefore)),
  notAfter: Math.min(...chain.map((one) => one.notAfter)),
})

// Node gives the subject as text in which a value may look like two; DER cannot be misread.
const subjectOf = (der: Buffer): ReadSubject => {
  const [outer] = read(der)
  const [part] = children(outer, 0x30, 'the certificate')
  const fields = children(part, 0x30, 'its signed part')
  // version [0], serial, algorithm, issuer, validity, subject; version 1 leaves out the first
  return readName(fields[fields[0]?.tag === 0xa0 ? 5 : 4]!)
}
