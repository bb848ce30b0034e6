import type { Klusterlet } from '../api/index.ts'
import { clientFor, ConnectionError, decoded, isUnauthorized, Secret, type Client } from '../kube/index.ts'
import { externalKubeconfigSecret } from '../operator/contract.ts'
import { isHosted } from '../operator/index.ts'
import { secretKey } from '../registration/contract.ts'
import type { Cluster } from './cluster.ts'
import type { Cli } from './command.ts'
import { CliError } from './errors.ts'
import { connectionIn } from './hub-preflight.ts'

/** A cluster, as a kubeconfig leads to it. */
export type Place = Pick<Cluster, 'client' | 'connection'>

type Asking = Pick<Cli, 'env' | 'program' | 'signal'>

/** The kubeconfig of the cluster that is managed from here; undefined when nobody has brought it yet. */
export const hostedKubeconfig = async (
  { signal }: Pick<Cli, 'signal'>,
  here: Client,
  namespace: string,
): Promise<string | undefined> =>
  decoded(await here.of(Secret, namespace).find(externalKubeconfigSecret, { signal }))?.[secretKey.kubeconfig]

/** Whoever can write a secret learns nothing of this machine: the kubeconfig has to hold everything itself. */
const placeIn = async (cli: Asking, text: string, source: string): Promise<Place> => {
  const connection = await connectionIn(cli, text, source)
  return { connection, client: clientFor(connection, { userAgent: cli.program }) }
}

/** The cluster that a Klusterlet in mode Hosted manages; undefined where that is the one it is on. Its client is the caller's to close. */
export const hostedCluster = async (cli: Asking, here: Client, klusterlet: Klusterlet): Promise<Place | undefined> => {
  if (!isHosted(klusterlet.spec ?? {})) return undefined
  const namespace = klusterlet.metadata.name!
  const text = await hostedKubeconfig(cli, here, namespace)
  return placeIn(cli, text ?? '', `secret ${namespace}/${externalKubeconfigSecret}`)
}

/** The same from a kubeconfig, if it answers from here. It need not: the agent runs elsewhere, and that is why. */
export const hostedClusterIn = async (
  cli: Asking & Pick<Cli, 'progress'>,
  text: string,
  source: string,
): Promise<Place | undefined> => {
  const place = await placeIn(cli, text, source)
  try {
    await place.client.json({ method: 'GET', path: '/version', timeoutMs: 10_000, signal: cli.signal })
    return place
  } catch (error) {
    place.client.close()
    if (isUnauthorized(error))
      throw new CliError(`the cluster of ${source} refuses the credential in it`, {
        next: 'give --managed-cluster-kubeconfig one that is good for as long as the cluster is managed',
        cause: error,
      })
    if (!(error instanceof ConnectionError)) throw error
    cli.progress.warn(`${error.message}: the agent has to reach it, from here nothing was checked`)
    return undefined
  }
}
