/**
 * The controllers of AWS identities and of what is built with them, alone in a process and without a lease, so that a test can kill it
 * at any call and start it again at once: `identity-hub.ts KUBECONFIG NAMESPACE SETTINGS`. Keys, region and endpoint are in the
 * environment, by the names that the AWS SDKs use.
 */
import { awsClient, endpointsFrom, fromDefaultChain } from '../../src/aws/index.ts'
import { startIdentities, startInfrastructure, type InfrastructureSettings } from '../../src/identities/index.ts'
import { clientFor, connectionFrom, loadKubeconfig } from '../../src/kube/index.ts'
import { Manager } from '../../src/runtime/index.ts'

const [path, namespace, settings] = process.argv.slice(2) as [string, string, string]
const { env } = process
const region = env['AWS_REGION']!
const client = clientFor(connectionFrom(await loadKubeconfig({ path, env: {} }), {}), { userAgent: 'test-hub' })
const aws = awsClient({ endpoints: endpointsFrom(env), timeoutMs: 10_000 })
const manager = new Manager({ client })
const controller = fromDefaultChain({ env, aws, region })
const room = startIdentities(manager, { client, aws, controller, namespace, region })
startInfrastructure(room, { aws, settings: JSON.parse(settings) as Partial<InfrastructureSettings> })
await manager.run(new AbortController().signal)
