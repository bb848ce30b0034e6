import { X509Certificate } from 'node:crypto'
import type { ManagedCluster } from '../../api/index.ts'
import type { Cause } from '../../runtime/webhook/index.ts'

type ClientConfig = NonNullable<ManagedCluster['spec']['managedClusterClientConfigs']>[number]

/** What is wrong with the ways to reach a cluster, field by field. */
export const clientConfigFaults = (configs: readonly ClientConfig[] = []): Cause[] =>
  configs.flatMap(({ url, caBundle }, i) => {
    const at = `spec.managedClusterClientConfigs[${i}]`
    const faults = [
      { field: `${at}.url`, message: urlFault(url) },
      { field: `${at}.caBundle`, message: caBundle ? bundleFault(caBundle) : undefined },
    ]
    return faults.filter((fault): fault is Cause => fault.message !== undefined)
  })

const urlFault = (text: string): string | undefined => {
  const url = URL.parse(text)
  if (!url) return `${JSON.stringify(text.slice(0, 200))} is not a URL: write the API server's as https://host:port`
  // Not quoted from here on: it may hold a password.
  if (url.username || url.password) return 'must hold no user or password: anybody who reads clusters would see it'
  if (url.protocol !== 'https:')
    return `begins with ${url.protocol}// and must begin with https://: the hub sends credentials there`
  if (!url.hostname) return 'names no host: write the address of the API server as https://host:port'
  return undefined
}

const block = /-----BEGIN ([A-Z0-9 ]+)-----[^-]*-----END \1-----/g

const bundleFault = (base64: string): string | undefined => {
  const pem = Buffer.from(base64, 'base64').toString('latin1')
  const blocks = [...pem.matchAll(block)]
  if (blocks.some(([, type]) => type!.endsWith('PRIVATE KEY')))
    return 'holds a private key, which belongs nowhere but on its server: take it out, and replace that key'
  const certificates = blocks.filter(([, type]) => type === 'CERTIFICATE')
  if (certificates.length === 0) return 'holds no certificate: it must be PEM (-----BEGIN CERTIFICATE-----), in base64'
  const broken = certificates.findIndex(([text]) => !isCertificate(text))
  return broken < 0 ? undefined : `certificate ${broken + 1} of ${certificates.length} cannot be read: export it anew`
}

const isCertificate = (pem: string): boolean => {
  try {
    return new X509Certificate(pem).raw.length > 0
  } catch {
    return false
  }
}
