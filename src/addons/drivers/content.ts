import { kubeconfigText, type KubeconfigParts } from '../../kube/index.ts'
import { pendingKey, type HubAddress } from '../../registration/contract.ts'
import { addOnSecretKey, credentialAnnotation } from '../contract.ts'
import { digestOf } from './digest.ts'
import type { Content, Item } from './driver.ts'

/** Marks what a credential was made for: another address or CA is another hub. */
export const hubDigest = ({ server, ca }: HubAddress): string => digestOf(server.replace(/\/+$/, ''), (ca ?? '').trim())

interface About {
  item: Item
  cluster: string
  address: HubAddress
}

/** A secret with a token, and nothing that another driver left. */
export const tokenContent = async (
  about: About,
  { token, expiration, uid }: { token: string; expiration: string; uid: string },
): Promise<Content> => ({
  data: {
    ...(await shared(about, { tokenFile: addOnSecretKey.token })),
    [addOnSecretKey.token]: token,
    [addOnSecretKey.expiration]: expiration,
    [addOnSecretKey.uid]: uid,
    [addOnSecretKey.certificate]: undefined,
    [addOnSecretKey.key]: undefined,
    [pendingKey.key]: undefined,
    [pendingKey.csr]: undefined,
  },
  annotations: {
    [credentialAnnotation.hub]: hubDigest(about.address),
    [credentialAnnotation.token]: digestOf(token),
  },
})

/** A secret with a certificate, and nothing that another driver left. A request under way is left alone. */
export const certificateContent = async (
  about: About,
  { certificate, key }: { certificate: string; key: string },
): Promise<Content> => ({
  data: {
    ...(await shared(about, { certFile: addOnSecretKey.certificate, keyFile: addOnSecretKey.key })),
    [addOnSecretKey.certificate]: certificate,
    [addOnSecretKey.key]: key,
    [addOnSecretKey.token]: undefined,
    [addOnSecretKey.expiration]: undefined,
    [addOnSecretKey.uid]: undefined,
  },
  annotations: { [credentialAnnotation.hub]: hubDigest(about.address), [credentialAnnotation.token]: undefined },
})

const shared = async (
  { item, cluster, address }: About,
  user: KubeconfigParts['user'],
): Promise<Record<string, string | undefined>> => ({
  [addOnSecretKey.clusterName]: cluster,
  // What is not for the API server of the hub has no kubeconfig.
  [addOnSecretKey.kubeconfig]: item.type === 'kubeClient' ? await kubeconfigOf(address, cluster, user) : undefined,
})

// Add-ons mount the secret as a folder, so that a new credential in the file beside is used without a restart.
const kubeconfigOf = (address: HubAddress, cluster: string, user: KubeconfigParts['user']): Promise<string> =>
  kubeconfigText({
    cluster: address.clusterEntry,
    context: 'default-context',
    userName: 'default-auth',
    namespace: cluster,
    server: address.server,
    ca: address.ca,
    tlsServerName: address.tlsServerName,
    proxyUrl: address.proxyUrl,
    user,
  })
