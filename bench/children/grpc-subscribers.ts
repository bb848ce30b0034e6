/** Many clusters that listen for their works over gRPC, each with a connection and a certificate of its own. */
import { subject } from '../../src/api/index.ts'
import { dataType, EventClient, readEvent } from '../../src/events/index.ts'
import { inParallel } from '../../src/runtime/index.ts'
import { credentialFor } from './agent-clients.ts'
import { asked, report, settings } from './child.ts'

const { server, authority, clusters, each } = settings as {
  server: string
  authority: { cert: string; key: string }
  clusters: string[]
  /** Works of each cluster. */
  each: number
}
let delivered = 0
let lastAt = 0
const all = Promise.withResolvers<void>()

const follow = async (cluster: string): Promise<void> => {
  const groups = [subject.clusterGroup(cluster), subject.managedClusters]
  const credential = credentialFor(authority, subject.agentUser(cluster, 'bench'), groups)
  const client = new EventClient({ source: cluster, server, credentials: async () => credential })
  const events = await client.subscribe({ source: cluster, clusterName: cluster, dataType: dataType.manifestBundles })
  const read = async (): Promise<void> => {
    for await (const event of events) {
      if (readEvent(event)?.action !== 'create_request') continue
      lastAt = Date.now()
      if (++delivered === clusters.length * each) all.resolve()
    }
  }
  read().catch(all.reject)
}

await inParallel(
  32,
  clusters.map((cluster) => () => follow(cluster)),
)
report({ subscribed: clusters.length })
await asked()
report({ waiting: 1 })
await all.promise
report({ delivered, lastAt })
await asked()
