import type { TestContext } from 'node:test'
import { awsClient, type AwsClient } from '../src/aws/index.ts'
import type { InfrastructureSettings } from '../src/identities/index.ts'
import type { Client } from '../src/kube/index.ts'
import { allowing, awsAccount, type AwsAccount } from './aws-account.ts'
import { startAwsFront, type AwsFront } from './aws-front.ts'
import { Component } from './component.ts'
import type { ControlPlane } from './control-plane.ts'
import { hubNamespace, managementAccount, namespace, region } from './identity-hub.ts'
import type { LocalAws } from './local-aws.ts'

const program = new URL('programs/identity-hub.ts', import.meta.url).pathname

/** The controllers of AWS identities in a process of their own, over a way to the local AWS that counts. */
export interface IdentityProcess {
  client: Client
  front: AwsFront
  /** The local AWS itself. */
  aws: AwsClient
  account: (id: string) => AwsAccount
  controllerArn: string
  /** `kill` is SIGKILL: nothing of it runs after that. */
  process: Component
}

/** Starts it; it is killed when the test ends. */
export const startIdentityProcess = async (
  t: TestContext,
  plane: ControlPlane,
  local: LocalAws,
  settings: Partial<InfrastructureSettings>,
): Promise<IdentityProcess> => {
  const aws = awsClient({ endpoints: { all: local.endpoint } })
  const account = (id: string): AwsAccount => awsAccount(aws, id)
  const user = 'capa-process'
  const assumes = allowing({ Action: ['sts:AssumeRole', 'sts:TagSession'], Resource: '*' })
  const keys = await account(managementAccount).user(user, assumes)
  const front = await startAwsFront(t, local.endpoint)
  const client = plane.client()
  await namespace(client, hubNamespace)
  const hub = new Component({
    name: 'identity-hub',
    binary: process.execPath,
    args: [program, plane.kubeconfig, hubNamespace, JSON.stringify(settings)],
    env: {
      AWS_ENDPOINT_URL: front.endpoint,
      AWS_REGION: region,
      AWS_ACCESS_KEY_ID: keys.accessKeyId,
      AWS_SECRET_ACCESS_KEY: keys.secretAccessKey,
    },
    folder: plane.folder,
    ready: () => Promise.resolve(true),
  })
  t.after(async () => {
    await hub.kill()
    client.close()
    aws.close()
  })
  hub.spawn()
  const controllerArn = `arn:aws:iam::${managementAccount}:user/${user}`
  return { client, front, aws, account, controllerArn, process: hub }
}
