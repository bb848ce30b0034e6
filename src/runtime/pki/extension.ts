import { octetString, oid, sequence, yes } from './der.ts'
import { alternativeNames, type Places } from './names.ts'

/** Object identifiers of the extensions that are written or read here. */
export const extensionIds = {
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
} as const

/** The name of an extension. */
export type ExtensionName = keyof typeof extensionIds

/** An extension that a reader may pass over. */
export const extension = (name: ExtensionName, value: Buffer): Buffer =>
  sequence(oid(extensionIds[name]), octetString(value))

/** An extension that a reader must understand or refuse the certificate. */
export const critical = (name: ExtensionName, value: Buffer): Buffer =>
  sequence(oid(extensionIds[name]), yes(), octetString(value))

/** The subjectAltName, if there is one; critical where the subject names nobody, as RFC 5280 (4.2.1.6) asks. */
export const placesExtension = (places: Places & { commonName?: string | undefined }): Buffer[] => {
  const names = alternativeNames(places)
  if (!names) return []
  return [places.commonName ? extension('subjectAltName', names) : critical('subjectAltName', names)]
}
