import type { TestContext } from 'node:test'
import { awsClient, type AwsClient, type Credentials } from '../src/aws/index.ts'
import { startAwsFront, type AwsFront } from '../testkit/aws-front.ts'
import { startHub, startLocalAws, type ControlPlane, type LanyardProcess } from '../testkit/index.ts'
import { builtProgram } from './built-program.ts'

/** The local AWS for as long as something runs: itself, and ways to it that count. */
export const withLocalAws = async (
  run: (parts: { aws: AwsClient; front: () => Promise<AwsFront> }) => Promise<void>,
): Promise<void> => {
  const ends: (() => unknown)[] = []
  const lifetime = { after: (end: () => unknown) => ends.push(end) } as unknown as TestContext
  const local = await startLocalAws()
  const aws = awsClient({ endpoints: { all: local.endpoint } })
  try {
    await run({ aws, front: () => startAwsFront(lifetime, local.endpoint) })
  } finally {
    for (const end of ends) await end()
    aws.close()
    await local.stop()
  }
}

/** A hub as it ships, with AWS identities, that acts with these keys. */
export const startAwsHub = (plane: ControlPlane, front: AwsFront, keys: Credentials): Promise<LanyardProcess> =>
  startHub(plane, {
    program: builtProgram(),
    args: ['--no-webhooks', '--no-leader-elect', '--feature-gates=AWSIdentities=true'],
    env: {
      AWS_ENDPOINT_URL: front.endpoint,
      AWS_ACCESS_KEY_ID: keys.accessKeyId,
      AWS_SECRET_ACCESS_KEY: keys.secretAccessKey,
      AWS_REGION: 'eu-west-1',
    },
  })
