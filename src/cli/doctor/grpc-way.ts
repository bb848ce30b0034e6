import { KubeconfigError, type Api } from '../../kube/index.ts'
import { grpcAgentDriver } from '../../registration/drivers/index.ts'
import type { Cli } from '../command.ts'
import type { Way } from './snapshot.ts'
import { wayThrough, type WayOptions } from './way-to-hub.ts'

/** The way of an agent that reaches its hub over gRPC, with its bootstrap configuration or its own certificate: one question to the endpoint. */
export const grpcWay = async (cli: Cli, options: WayOptions, as: 'bootstrap' | 'cluster'): Promise<Way> => {
  const { data, source, name } = options
  const driver = grpcAgentDriver({ env: cli.env, clock: cli.clock })
  const client = { userAgent: cli.program }
  let hub: Api | undefined
  try {
    hub =
      as === 'bootstrap'
        ? await driver.asBootstrap(data, source, client, { cluster: name, agent: '' })
        : driver.asCluster(() => data, await driver.hubOf(data, source), client)
    return await wayThrough(cli, hub, options)
  } catch (error) {
    if (error instanceof KubeconfigError) return { kind: 'broken', why: error.message }
    throw error
  } finally {
    hub?.close()
  }
}
