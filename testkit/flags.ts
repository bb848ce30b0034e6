import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Flags of a program, without their dashes: a list repeats a flag, `undefined` leaves out a default. */
export type Flags = Record<string, string | readonly string[] | undefined>

/** The flags as arguments. */
export const asArguments = (flags: Flags): string[] =>
  Object.entries(flags).flatMap(([name, value]) => {
    if (value === undefined) return []
    return (typeof value === 'string' ? [value] : value).map((one) => `--${name}=${one}`)
  })

/** Where the files of a control plane lie in its folder. */
export const filesIn = (folder: string) => ({
  etcdData: join(folder, 'etcd'),
  // a socket instead of a port: nobody else can take it, or reach an etcd that asks for no password
  etcdSocket: join(folder, 'etcd.sock'),
  ca: join(folder, 'ca.pem'),
  caKey: join(folder, 'ca.key'),
  serverCert: join(folder, 'server.pem'),
  serverKey: join(folder, 'server.key'),
  frontProxyCa: join(folder, 'front-proxy-ca.pem'),
  serviceAccountKey: join(folder, 'service-account.key'),
  serviceAccountPublicKey: join(folder, 'service-account.pub'),
  controllerManagerKubeconfig: join(folder, 'controller-manager.kubeconfig'),
  adminKubeconfig: join(folder, 'admin.kubeconfig'),
  auditPolicy: join(folder, 'audit-policy.json'),
  auditLog: join(folder, 'audit.log'),
  egressConfiguration: join(folder, 'egress.json'),
  // where a runner, if there is one, is the network of the cluster
  egressSocket: join(folder, 'egress.sock'),
})

/** The files of a control plane. */
export type Files = ReturnType<typeof filesIn>

/** A single member that does not wait for the disk: what it holds goes away with the folder. */
export const etcdFlags = (files: Files): Flags => ({
  name: 'lanyard',
  'data-dir': files.etcdData,
  'listen-client-urls': `unix://${files.etcdSocket}`,
  'advertise-client-urls': 'http://127.0.0.1:1', // only told to other members, of which there are none
  'listen-peer-urls': `unix://${files.etcdSocket}.peer`,
  'initial-advertise-peer-urls': 'http://127.0.0.1:2',
  'initial-cluster': 'lanyard=http://127.0.0.1:2',
  'unsafe-no-fsync': 'true',
  'log-level': 'warn',
})

/** What the API server is told that depends on the options of `startControlPlane`. */
export interface ApiServerSettings {
  port: number
  serviceAccountIssuer: string
  runtimeConfig: Record<string, string>
  audit: boolean
  extra: Flags
}

/** Everything that clusters in the field have on, and nothing that needs nodes. */
export const apiServerFlags = (files: Files, settings: ApiServerSettings): Flags => ({
  'etcd-servers': `unix://${files.etcdSocket}`,
  'bind-address': '127.0.0.1',
  'advertise-address': '127.0.0.1',
  'secure-port': String(settings.port),
  'tls-cert-file': files.serverCert,
  'tls-private-key-file': files.serverKey,
  'client-ca-file': files.ca,
  'requestheader-client-ca-file': files.frontProxyCa,
  'requestheader-allowed-names': frontProxyName,
  'requestheader-username-headers': 'X-Remote-User',
  'requestheader-group-headers': 'X-Remote-Group',
  'requestheader-extra-headers-prefix': 'X-Remote-Extra-',
  'authorization-mode': 'RBAC',
  'enable-bootstrap-token-auth': 'true',
  'service-account-issuer': settings.serviceAccountIssuer,
  'service-account-key-file': files.serviceAccountPublicKey,
  'service-account-signing-key-file': files.serviceAccountKey,
  'service-cluster-ip-range': '10.0.0.0/24',
  'allow-privileged': 'true',
  'egress-selector-config-file': files.egressConfiguration,
  profiling: 'false',
  'shutdown-delay-duration': '0s',
  'shutdown-watch-termination-grace-period': '1s', // else open watches hold up its end for a minute
  'runtime-config': Object.entries(settings.runtimeConfig).map(([key, value]) => `${key}=${value}`),
  ...(settings.audit && {
    'audit-policy-file': files.auditPolicy,
    'audit-log-path': files.auditLog,
    'audit-log-maxsize': '0', // one file, however long
  }),
  ...settings.extra,
})

/**
 * Connections to Services, pods and nodes go through a socket, where a runner listens (runner/network.ts). Without one they
 * fail at once, which is better than packets to addresses that nobody has. Webhooks by URL are not concerned.
 */
export const writeEgressConfiguration = (files: Files): void => {
  const connection = { proxyProtocol: 'HTTPConnect', transport: { uds: { udsName: files.egressSocket } } }
  const configuration = {
    apiVersion: 'apiserver.k8s.io/v1beta1',
    kind: 'EgressSelectorConfiguration',
    egressSelections: [{ name: 'cluster', connection }],
  }
  writeFileSync(files.egressConfiguration, JSON.stringify(configuration))
}

/** The common name by which the API server knows the fault proxy. */
export const frontProxyName = 'front-proxy-client'

const controllersThatNeedNodes = [
  'cloud-node-lifecycle',
  'device-taint-eviction',
  'ephemeral-volume',
  'node-ipam',
  'node-lifecycle',
  'node-route',
  'persistentvolume-attach-detach',
  'persistentvolume-binder',
  'persistentvolume-expander',
  'persistentvolume-protection',
  'persistentvolumeclaim-protection',
  'service-lb',
  'taint-eviction',
  'ttl', // of nodes
  'volumeattributesclass-protection',
]

/** The controllers that make sense without nodes, as one instance that needs no election. */
export const controllerManagerFlags = (files: Files, port: number): Flags => ({
  kubeconfig: files.controllerManagerKubeconfig,
  'bind-address': '127.0.0.1',
  'secure-port': String(port),
  'tls-cert-file': files.serverCert,
  'tls-private-key-file': files.serverKey,
  'leader-elect': 'false',
  // without it no controller may sign certificate requests
  'use-service-account-credentials': 'true',
  'service-account-private-key-file': files.serviceAccountKey,
  'root-ca-file': files.ca,
  'cluster-signing-cert-file': files.ca,
  'cluster-signing-key-file': files.caKey,
  controllers: [
    '*',
    'token-cleaner-controller',
    ...controllersThatNeedNodes.map((name) => `-${name}-controller`),
  ].join(),
  'kube-api-qps': '200',
  'kube-api-burst': '400',
  profiling: 'false',
})
