/** AWS's own tools, unmodified, against the local AWS: they use the real names of AWS, and a proxy that terminates TLS leads them here. */
import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { ControlPlane } from '../control-plane.ts'
import { kubectl } from '../kubectl.ts'
import { controlPlaneBinary, localAwsBinary, plainEnvironment } from '../paths.ts'
import type { LocalEks, ManagedEks } from './index.ts'

/** A network that leads to AWS by a proxy; the PATH leads to `aws` and `kubectl`. For `aws` and our programs alike. */
export const behindProxy = (eks: LocalEks, home: string): Record<string, string> & { HOME: string; PATH: string } => {
  mkdirSync(home, { recursive: true })
  const ca = join(home, 'aws-ca.pem')
  writeFileSync(ca, eks.proxy.ca)
  const { PATH } = plainEnvironment()
  return {
    PATH: [dirname(localAwsBinary('aws')), dirname(controlPlaneBinary('kubectl')), PATH].join(':'),
    HOME: home,
    AWS_CA_BUNDLE: ca,
    NODE_EXTRA_CA_CERTS: ca,
    HTTPS_PROXY: eks.proxy.url,
    NO_PROXY: '127.0.0.1',
    AWS_EC2_METADATA_DISABLED: 'true',
    PYTHONDONTWRITEBYTECODE: '1',
  }
}

/** What a pod of the managed cluster has in its environment, and the way to AWS. */
export const awsToolsEnvironment = async (
  eks: LocalEks,
  managed: ManagedEks,
  plane: ControlPlane,
): Promise<Record<string, string> & { HOME: string }> => {
  const { AWS_ENDPOINT_URL: _, ...pod } = await managed.environment()
  const region = { AWS_DEFAULT_REGION: pod['AWS_REGION']! } // EKS sets both
  return { ...pod, ...region, ...behindProxy(eks, join(plane.folder, 'aws-tools')) }
}

/** kubectl with a kubeconfig whose user is `aws eks get-token`, as a pod of the managed cluster. */
export const kubectlByAwsCli = async (
  args: readonly string[],
  { eks, managed, plane, kubeconfig }: { eks: LocalEks; managed: ManagedEks; plane: ControlPlane; kubeconfig: string },
): Promise<string> => {
  const env = await awsToolsEnvironment(eks, managed, plane)
  const path = join(env.HOME, 'hub.kubeconfig')
  writeFileSync(path, kubeconfig, { mode: 0o600 })
  return kubectl(args, { kubeconfig: path, folder: env.HOME, env })
}

const describeHub = `
import sys, botocore.session
own = botocore.session.get_session()
role = own.create_client('sts').assume_role(RoleArn=sys.argv[1], RoleSessionName='sdk')['Credentials']
keys = {'aws_access_key_id': role['AccessKeyId'], 'aws_secret_access_key': role['SecretAccessKey'], 'aws_session_token': role['SessionToken']}
print(own.create_client('eks', **keys).describe_cluster(name=sys.argv[2])['cluster']['arn'])
`

/** What AWS's SDK for Python sees of the hub, over both roles, as a pod of the managed cluster. */
export const hubBySdk = async (
  roleArn: string,
  { eks, managed, plane }: { eks: LocalEks; managed: ManagedEks; plane: ControlPlane },
): Promise<string> => {
  const env = await awsToolsEnvironment(eks, managed, plane)
  const args = ['-c', describeHub, roleArn, eks.hubCluster.name]
  return (await promisify(execFile)(localAwsBinary('python3'), args, { env })).stdout.trim()
}
