import { X509Certificate, createPrivateKey } from 'node:crypto'

/** Why this is no certificate; undefined when it is one. Only the first of a bundle is looked at. */
export const certificateProblem = (pem: string): string | undefined => {
  try {
    // Node takes DER too, but not where TLS is set up
    if (pem.includes('-----BEGIN') && new X509Certificate(pem)) return undefined
  } catch {
    // OpenSSL's reason ("wrong tag") helps nobody
  }
  return 'there is no certificate in PEM form in it'
}

/** Why certificate and key cannot be used together; undefined when they can. */
export const pairProblem = (cert: string, key: string): string | undefined => {
  const problem = certificateProblem(cert)
  if (problem) return problem
  try {
    const fits = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))
    return fits ? undefined : 'the key does not belong to the certificate'
  } catch {
    if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED/.test(key))
      return 'the key is protected by a passphrase'
    return 'there is no private key in PEM form in it'
  }
}
