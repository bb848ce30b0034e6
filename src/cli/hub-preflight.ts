import { ManagedCluster } from '../api/index.ts'
import {
  clientFor,
  ConnectionError,
  connectionFrom,
  isForbidden,
  isUnauthorized,
  kubeconfigText,
  KindMapper,
  Namespace,
  parseKubeconfig,
  type Api,
  type Client,
  type Connection,
  type KubeconfigParts,
} from '../kube/index.ts'
import { idClaim } from '../registration/contract.ts'
import type { Cli } from './command.ts'
import { CliError } from './errors.ts'
import { isDistrust } from './hub-trust.ts'

/** The kubeconfig with which an agent asks to be let in, named as other tools name it. */
export const bootstrapKubeconfig = (
  parts: Pick<KubeconfigParts, 'server' | 'ca' | 'proxyUrl'> & { token: string },
): Promise<string> =>
  kubeconfigText({
    cluster: 'hub',
    context: 'bootstrap',
    userName: 'bootstrap',
    namespace: 'default',
    server: parts.server,
    ca: parts.ca,
    proxyUrl: parts.proxyUrl,
    user: { token: parts.token },
  })

/** The connection that a kubeconfig text describes, proxies of the environment included. */
export const connectionIn = async (cli: Pick<Cli, 'env'>, text: string, source: string): Promise<Connection> =>
  connectionFrom(await parseKubeconfig(text, { source }), { env: cli.env })

/** Asks the hub who we are there and what it is; an error names what is wrong with token, CA or address. */
export const checkHub = async (cli: Cli, connection: Connection, because: string): Promise<Client> => {
  const client = clientFor(connection, { userAgent: cli.program })
  const { server } = connection
  const newToken = `get a new one on the hub: ${cli.program} get token`
  try {
    await client.json({ method: 'GET', path: '/version', signal: cli.signal })
    const found = await new KindMapper(client).find(
      { apiVersion: `${ManagedCluster.group}/${ManagedCluster.version}`, kind: ManagedCluster.kind },
      { signal: cli.signal },
    )
    if (found) return client
    throw new CliError(`${server} is not a hub: it does not know ManagedClusters`, {
      next: `check --hub-apiserver, or make it a hub there: ${cli.program} init`,
    })
  } catch (error) {
    client.close()
    if (isUnauthorized(error))
      throw new CliError(`hub ${server} refuses the token: it is wrong, expired, or from another hub`, {
        next: newToken,
        cause: error,
      })
    if (isForbidden(error))
      throw new CliError(`hub ${server} does not let this token ask to join: ${error.serverMessage}`, {
        next: newToken,
        cause: error,
      })
    if (error instanceof ConnectionError && isDistrust(error))
      throw new CliError(`the certificate of hub ${server} is not from the CA that it should be (${because})`, {
        next: `check --hub-apiserver and the CA; ${cli.program} get token on the hub prints the hash of the right one`,
        cause: error,
      })
    throw error
  }
}

/** A name that another cluster has on the hub already would only wait there for ever. */
export const checkNameIsFree = async (
  cli: Cli,
  hub: Pick<Api, 'of'>,
  local: Client | undefined,
  name: string,
): Promise<ManagedCluster | undefined> => {
  const { signal } = cli
  const taken = await hub
    .of(ManagedCluster)
    .find(name, { signal })
    .catch((error: unknown) => {
      if (isForbidden(error)) return undefined // the hub keeps that to itself
      throw error
    })
  const claimed = taken?.status?.clusterClaims?.find((claim) => claim.name === idClaim)?.value
  if (!claimed || !local) return taken
  const own = (await local.of(Namespace).find('kube-system', { signal }))?.metadata.uid
  if (claimed === own) return taken
  throw new CliError(`the hub has another cluster with the name ${name}`, {
    next: 'choose another --cluster-name; if the other cluster is gone, delete its ManagedCluster on the hub first',
  })
}
