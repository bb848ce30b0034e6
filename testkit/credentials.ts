import { createPublicKey } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createAuthority, issue, newKey, type KeyPair } from '../src/runtime/pki/index.ts'
import { frontProxyName, type Files } from './flags.ts'

/** Who a client is to the API server: the subject of its certificate. */
export interface Identity {
  user: string
  groups?: readonly string[] | undefined
}

/** What a control plane's own authority can make. */
export interface Credentials {
  /** The authority's certificate: what clients trust, and the caBundle of webhooks that use `forServer`. */
  ca: string
  /** The client certificate of a proxy that may name any user in X-Remote-User. */
  frontProxy: KeyPair
  forServer: (dnsNames?: readonly string[]) => KeyPair
  forClient: (identity: Identity, ttlMs?: number) => KeyPair
}

const day = 86_400_000

/** From a minute before now or, when the time to live is negative, before its own end: such a certificate has expired. */
const from = (now: Date, ttlMs: number) => {
  const end = now.getTime() + ttlMs
  return { notBefore: new Date(Math.min(now.getTime(), end) - 60_000), notAfter: new Date(end) }
}
const names = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local']

/** Makes the authorities and keys of a control plane, and writes the files that its programs read. */
export const createCredentials = (files: Files): Credentials => {
  const now = new Date()
  const authority = createAuthority({ commonName: 'lanyard-testkit', validForMs: 365 * day, now })
  const proxies = createAuthority({ commonName: 'lanyard-testkit-front-proxy', validForMs: 365 * day, now })
  const serviceAccounts = newKey()
  const made: Credentials = {
    ca: authority.cert,
    frontProxy: issue(proxies, { commonName: frontProxyName, usages: ['client'], ...from(now, 365 * day) }),
    forServer: (dnsNames = []) =>
      issue(authority, {
        commonName: 'lanyard-testkit-server',
        dnsNames: ['localhost', ...dnsNames],
        ipAddresses: ['127.0.0.1', '10.0.0.1'],
        usages: ['server'],
        ...from(new Date(), 365 * day),
      }),
    forClient: ({ user, groups = [] }, ttlMs = day) =>
      issue(authority, { commonName: user, organizations: groups, usages: ['client'], ...from(new Date(), ttlMs) }),
  }
  const server = made.forServer(names)
  const publicKey = createPublicKey(serviceAccounts).export({ type: 'spki', format: 'pem' })
  writePrivate(files.ca, authority.cert)
  writePrivate(files.caKey, authority.key)
  writePrivate(files.serverCert, server.cert)
  writePrivate(files.serverKey, server.key)
  writePrivate(files.frontProxyCa, proxies.cert)
  writePrivate(files.serviceAccountKey, serviceAccounts)
  writePrivate(files.serviceAccountPublicKey, publicKey)
  return made
}

/** Writes a kubeconfig with one context, and returns its path. */
export const writeKubeconfig = (path: string, to: { server: string; ca: string; client: KeyPair }): string => {
  const user = { 'client-certificate-data': base64(to.client.cert), 'client-key-data': base64(to.client.key) }
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'testkit', cluster: { server: to.server, 'certificate-authority-data': base64(to.ca) } }],
    users: [{ name: 'testkit', user }],
    contexts: [{ name: 'testkit', context: { cluster: 'testkit', user: 'testkit' } }],
    'current-context': 'testkit',
  }
  writePrivate(path, JSON.stringify(kubeconfig, null, 2))
  return path
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

const writePrivate = (path: string, text: string): void => writeFileSync(path, text, { mode: 0o600 })
