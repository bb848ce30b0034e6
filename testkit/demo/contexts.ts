import { renameSync, writeFileSync } from 'node:fs'
import type { ControlPlane } from '../control-plane.ts'

/** One kubeconfig for the administrator of several clusters, a context each; the first is the current one. */
export const writeContexts = async (path: string, planes: ReadonlyMap<string, ControlPlane>): Promise<void> => {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const entries = [...planes].map(([name, plane]) => {
    const { cert, key } = plane.clientCertificate({ user: `admin-of-${name}`, groups: ['system:masters'] })
    return {
      cluster: { name, cluster: { server: plane.server, 'certificate-authority-data': base64(plane.ca) } },
      context: { name, context: { cluster: name, user: name } },
      user: { name, user: { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) } },
    }
  })
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': entries[0]?.context.name,
    clusters: entries.map(({ cluster }) => cluster),
    contexts: entries.map(({ context }) => context),
    users: entries.map(({ user }) => user),
  }
  writeFileSync(`${path}.new`, JSON.stringify(kubeconfig, undefined, 2), { mode: 0o600 })
  renameSync(`${path}.new`, path)
}
