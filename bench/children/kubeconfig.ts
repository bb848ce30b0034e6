import { readFileSync } from 'node:fs'

/** How to reach the control plane; certificates and key in base64. */
export interface Access {
  server: string
  ca: string
  cert: string
  key: string
}

interface TestkitKubeconfig {
  clusters: [{ cluster: { server: string; 'certificate-authority-data': string } }]
  users: [{ user: { 'client-certificate-data': string; 'client-key-data': string } }]
}

/** Reads a kubeconfig of the testkit, which is JSON: neither side pays for a YAML parser, as in a pod. */
export const readAccess = (path: string): Access => {
  const { clusters, users } = JSON.parse(readFileSync(path, 'utf8')) as TestkitKubeconfig
  const { cluster } = clusters[0]
  const { user } = users[0]
  return {
    server: cluster.server,
    ca: cluster['certificate-authority-data'],
    cert: user['client-certificate-data'],
    key: user['client-key-data'],
  }
}
