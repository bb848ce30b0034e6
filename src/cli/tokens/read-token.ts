import { ManagedCluster, ManagedServiceAccount } from '../../api/index.ts'
import { ApiError, ConnectionError, isForbidden, Secret, type Client } from '../../kube/index.ts'
import { readTokenSecret, whyMissing, type HeldToken } from '../../serviceaccounts/tokens/index.ts'
import { CliError } from '../errors.ts'

/** The token on the hub, in one read; where there is none, why. */
export const readToken = async (
  client: Client,
  cluster: string,
  name: string,
  signal: AbortSignal,
): Promise<HeldToken> => {
  const secret = await client
    .of(Secret, cluster)
    .find(name, { signal })
    .catch((cause: unknown) => {
      if (!isForbidden(cause)) throw cause
      throw new CliError(`you may not read the token of ManagedServiceAccount ${cluster}/${name}`, {
        next: `it is Secret ${name} in namespace ${cluster} of ${client.connection.server}: have somebody grant you get on it`,
        cause,
      })
    })
  const held = secret && readTokenSecret(secret)
  if (held && !('problem' in held)) return held
  const [of, account] = await Promise.all([
    ifReadable(client.of(ManagedCluster).find(cluster, { signal })),
    ifReadable(client.of(ManagedServiceAccount, cluster).find(name, { signal })),
  ])
  const why = whyMissing({ clusterName: cluster, name, cluster: of, account, secret })
  throw new CliError(why?.message ?? `ManagedServiceAccount ${cluster}/${name} has no token`)
}

/** Whether the hub gave no answer, as against one that says no. */
export const isOutage = (error: unknown): boolean =>
  error instanceof ConnectionError || (error instanceof ApiError && (error.status >= 500 || error.status === 429))

// Who may read the Secret alone still gets an answer; without the right to these, a poorer one.
const ifReadable = <T>(reading: Promise<T | undefined>): Promise<T | undefined> =>
  reading.catch((error: unknown) => {
    if (error instanceof ApiError) return undefined
    throw error
  })
