import { clientFor, type Client } from '../../src/kube/index.ts'
import { readAccess } from './kubeconfig.ts'

/** Our client. */
export const connect = (kubeconfig: string, userAgent = 'lanyard-bench'): Client => {
  const { server, ca, cert, key } = readAccess(kubeconfig)
  const credential = { ca: decoded(ca), cert: decoded(cert), key: decoded(key) }
  return clientFor({ source: kubeconfig, server, credentials: async () => credential }, { userAgent })
}

const decoded = (base64: string): string => Buffer.from(base64, 'base64').toString()
