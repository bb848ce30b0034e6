import { readFileSync } from 'node:fs'
import { assumeRole, assumeRoleWithWebIdentity, hubRoleArn, mintEksToken } from '../../src/aws/index.ts'
import { clientFor, type Client } from '../../src/kube/index.ts'
import type { LocalEks, ManagedEks } from './index.ts'

/** The hub, as the role of a managed cluster on it: from the token of a pod, over both roles, as an agent goes. */
export const asManaged = async (eks: LocalEks, managed: ManagedEks): Promise<Client> => {
  const environment = await managed.environment()
  const region = eks.hubCluster.region
  const own = { arn: environment['AWS_ROLE_ARN']!, sessionName: 'test', region }
  const podToken = readFileSync(environment['AWS_WEB_IDENTITY_TOKEN_FILE']!, 'utf8')
  const source = await assumeRoleWithWebIdentity(eks.client, podToken, own)
  const credentials = await assumeRole(eks.client, source, { ...own, arn: hubRoleArn(managed.pair) })
  const { token } = await mintEksToken({ clusterName: 'hub', region, source: async () => credentials })
  const { server, ca } = eks.hub
  return clientFor({ source: 'test', server, credentials: async () => ({ token, ca }) })
}
