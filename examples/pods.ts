/** A program on the hub that counts the pods of every cluster it has a token for. Run it with `node examples/pods.ts [SET]`. */
import { hubClient, openTokens, resource, type KubeObject, type Tokens } from 'lanyard/tokens'

const Pod = resource<KubeObject>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true })

/** How many pods each cluster has. The token is the current one at each request, so this can go on for months. */
export const podsByCluster = async (tokens: Tokens): Promise<Map<string, number>> => {
  const counts = tokens.list().map(async ({ cluster, name }) => {
    const { items } = await tokens.clientFor(cluster, name).of(Pod).list({ metadataOnly: true })
    return [cluster, items.length] as const
  })
  return new Map(await Promise.all(counts))
}

if (import.meta.main) {
  const client = await hubClient(process.env)
  const tokens = await openTokens({ client, name: 'pod-reader', clusterSet: process.argv[2] })
  for (const [cluster, pods] of await podsByCluster(tokens)) process.stdout.write(`${cluster}: ${pods} pods\n`)
  tokens.close()
  client.close()
}
