import { awsClient, endpointsFrom, fromDefaultChain } from '../aws/index.ts'
import {
  identityWebhookConfigurations,
  identityWebhooks,
  startIdentities,
  startInfrastructure,
} from '../identities/index.ts'
import type { Client } from '../kube/index.ts'
import type { Logger, Manager } from '../runtime/index.ts'

export interface HubAwsOptions {
  client: Client
  namespace: string
  instance: string
  env: NodeJS.ProcessEnv
  log: Logger
  gates: { autoControllerIdentityCreator: boolean }
}

/**
 * AWS identities on a hub, and the clusters that are built with them: feature gate AWSIdentities. Loaded only then, so that a hub without AWS pays nothing. Region, endpoints,
 * proxy and the controller's own credentials come from the environment, by the names that the AWS SDKs use.
 */
export const hubAws = (manager: Manager, { client, namespace, instance, env, log, gates }: HubAwsOptions) => {
  const calls = manager.metrics.counter('lanyard_aws_calls_total', 'Calls to AWS by operation and result')
  const aws = awsClient({
    endpoints: endpointsFrom(env),
    proxyEnv: env,
    onCall: ({ service, operation, result }) => calls.inc({ service, operation, result }),
  })
  const region = env['AWS_REGION'] || env['AWS_DEFAULT_REGION'] || 'us-east-1'
  const room = startIdentities(manager, {
    client,
    aws,
    controller: fromDefaultChain({ env, aws, region }),
    namespace,
    region,
    settings: { autoControllerIdentityCreator: gates.autoControllerIdentityCreator },
    instance,
    log,
  })
  startInfrastructure(room, { aws })
  return {
    routes: identityWebhooks({ client, records: room.records }),
    configurations: identityWebhookConfigurations,
    close: async () => {
      await room.events.flush()
      room.credentials.close()
      aws.close()
    },
  }
}
