import {
  clientFor,
  connectionFrom,
  KubeconfigError,
  parseKubeconfig,
  type Api,
  type ClientOptions,
  type Connection,
  type Credential,
  type Environment,
  type Kubeconfig,
} from '../../kube/index.ts'
import { secretKey } from '../contract.ts'
import type { HubAddress, SecretData } from './driver.ts'

/** What drivers share that reach the hub's own API server by the kubeconfig in a bootstrap secret. */

/** Where the kubeconfig sends us. It says so even when the bootstrap credential in it has expired: an agent that has joined needs only the address. */
export const hubFromKubeconfig = async (
  bootstrap: SecretData,
  source: string,
  env?: Environment,
): Promise<HubAddress> => {
  const kubeconfig = await kubeconfigIn(bootstrap, source)
  const { server, tlsServerName, proxyUrl, insecureSkipTlsVerify, credentials } = connectionFrom(
    withoutUsers(kubeconfig),
    { env },
  )
  const fail = (problem: string, next: string): KubeconfigError => new KubeconfigError({ source, problem, next })
  if (!server.startsWith('https:'))
    throw fail(
      `its server ${server} is not https`,
      'write it as https://host:port: a hub is never spoken to in the clear',
    )
  if (insecureSkipTlsVerify)
    throw fail(
      'it has insecure-skip-tls-verify, so that anybody could pose as the hub',
      "remove it, and put the hub's CA into certificate-authority-data",
    )
  const { ca } = await credentials()
  const clusterEntry = kubeconfig.contexts.get(kubeconfig.currentContext ?? '')?.value.cluster ?? ''
  return { source, server, ca, tlsServerName, proxyUrl, clusterEntry }
}

/** The hub as the user of the kubeconfig in a bootstrap secret. */
export const asBootstrapUser = async (
  bootstrap: SecretData,
  source: string,
  options: ClientOptions,
  env?: Environment,
): Promise<Api> => {
  await hubFromKubeconfig(bootstrap, source, env) // what is refused there must not be connected to here
  const kubeconfig = await kubeconfigIn(bootstrap, source)
  return clientFor(connectionFrom(kubeconfig, { env, now: options.now }), options)
}

/** The hub as whoever the credential says. It is asked for at each request: what it returns is used at once, and kept connections with it. */
export const asHolder = (credential: () => Omit<Credential, 'ca'>, hub: HubAddress, options: ClientOptions): Api =>
  clientFor(holder(credential, hub), options)

/** The same as a connection, for other wires. */
export const holder = (credential: () => Omit<Credential, 'ca'>, hub: HubAddress): Connection => {
  let last: Credential = {}
  return {
    source: hub.source,
    server: hub.server,
    tlsServerName: hub.tlsServerName,
    proxyUrl: hub.proxyUrl,
    credentials: async () => {
      const { cert, key, token } = credential()
      const same = last.cert === cert && last.key === key && last.token === token
      if (!same) last = { ca: hub.ca, cert, key, token }
      return last
    },
  }
}

const kubeconfigIn = async (bootstrap: SecretData, source: string): Promise<Kubeconfig> => {
  const text = bootstrap[secretKey.kubeconfig]
  if (text?.trim()) return parseKubeconfig(text, { source })
  const keys = Object.keys(bootstrap)
  throw new KubeconfigError({
    source,
    problem: `it has no key "${secretKey.kubeconfig}"${keys.length ? `, only ${keys.slice(0, 5).join(', ')}` : ''}`,
    next: 'put the kubeconfig for the hub there, as clusteradm join does, under that key',
  })
}

const withoutUsers = (kubeconfig: Kubeconfig): Kubeconfig => ({
  ...kubeconfig,
  contexts: new Map(
    [...kubeconfig.contexts].map(([name, { value, ...entry }]) => {
      const { user: _, ...rest } = value
      return [name, { ...entry, value: rest }]
    }),
  ),
})
