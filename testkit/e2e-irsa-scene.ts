/**
 * Two EKS clusters on this machine with everything around them: pods are processes that get their roles as EKS gives them, and
 * a person has a kubeconfig in which clusters are called by their ARN, as `aws eks update-kubeconfig` calls them.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { creatorAccessPolicy, eksClusterArn, type Credentials, type EksCluster } from '../src/aws/index.ts'
import { ConfigMap, resource, type KubeObject } from '../src/kube/index.ts'
import type { ControlPlane } from './control-plane.ts'
import { eksCluster, startLocalEks, startManagedPlane, type LocalEks, type LocalEksOptions } from './eks/index.ts'
import { runProgram, type Outcome } from './program.ts'
import { startRunner, type Runner } from './runner/index.ts'

const managedAccount = '222222222222'

/** What EKS has put there for the nodes: it is not ours, and stays. */
export const foreignMapping = `- rolearn: arn:aws:iam::111111111111:role/nodes
  username: system:node:{{EC2PrivateDNSName}}
  groups: [ system:nodes ]
`

export interface IrsaScene {
  eks: LocalEks
  managed: ControlPlane
  managedCluster: EksCluster
  managedArn: string
  /** Runs `clusteradm` at one of the clusters, which is the current context; with AWS keys where somebody has some. */
  at: (where: 'hub' | 'managed', args: readonly string[], keys?: Credentials) => Promise<string>
  /** As `at`, whatever comes of it. */
  attempt: (where: 'hub' | 'managed', args: readonly string[], keys?: Credentials) => Promise<Outcome>
  /** Somebody with the rights in the hub's account that accepting needs, and no others. */
  person: Credentials
  /** What the pods said. */
  told: () => string
  [Symbol.asyncDispose]: () => Promise<void>
}

/**
 * Starts it. With `bare`, the roles that have to be there before are not: a person makes them; and the managed cluster lets people
 * in by access entries, as the hub does.
 */
export const startIrsaScene = async ({
  bare = false,
  ...options
}: LocalEksOptions & { bare?: boolean }): Promise<IrsaScene> => {
  const cluster = eksCluster('m1', managedAccount, options.partition)
  const ends: (() => Promise<unknown>)[] = []
  const end = async (): Promise<void> => {
    for (const stop of ends.toReversed()) await stop()
  }
  try {
    const starting = startLocalEks({ ...options, clusters: [cluster], ...(bare && { creator: 'none' as const }) })
    const [eks, managed] = await Promise.all([
      starting,
      bare ? starting.then((eks) => eks.plane(cluster)) : startManagedPlane(cluster),
    ])
    ends.push(() => Promise.all([eks.stop(), managed.stop()]))
    const metadata = { name: 'aws-auth', namespace: 'kube-system' }
    await eks.hub
      .client()
      .of(ConfigMap, 'kube-system')
      .create({ metadata, data: { mapRoles: foreignMapping } })
    if (!bare) await eks.managed('m1', { account: managedAccount, plane: managed })
    const env = podEnvironment(eks)
    const runners = await Promise.all([startRunner(eks.hub, { env }), startRunner(managed, { env })])
    ends.push(() => Promise.all(runners.map((runner) => runner.stop())))
    const managedArn = eksClusterArn(cluster)
    const kubeconfigs = { hub: kubeconfigBy(eks.hub, eks.hubArn), managed: kubeconfigBy(managed, managedArn) }
    const person = await eks.hubAccount.user('ada', personsPolicy(eks, options))
    const attempt: IrsaScene['attempt'] = (where, args, keys) =>
      runProgram('clusteradm', args, {
        plane: where === 'hub' ? eks.hub : managed,
        env: { ...env, KUBECONFIG: kubeconfigs[where], HOME: eks.hub.folder, ...(keys && keysOf(keys)) },
      })
    return {
      eks,
      managed,
      managedCluster: cluster,
      managedArn,
      person,
      attempt,
      at: async (where, args, keys) => {
        const { code, stdout, stderr } = await attempt(where, args, keys)
        if (code === 0) return stdout
        throw new Error(`clusteradm ${args[0]}: exit code ${code}\n${stdout}${stderr}\n${toldBy(runners)}`)
      },
      told: () => `${toldBy(runners)}\naws-iam-authenticator:\n${eks.authenticator?.log(50) ?? '(none)'}`,
      [Symbol.asyncDispose]: end,
    }
  } catch (error) {
    await end()
    throw error
  }
}

const toldBy = (runners: readonly Runner[]): string => runners.map((runner) => runner.log().slice(-20_000)).join('\n')

/** What EKS sets for every pod, where AWS is on this machine, and the hub's authority among those that the machine trusts. */
const podEnvironment = (eks: LocalEks): Record<string, string> => ({
  AWS_ENDPOINT_URL: eks.endpoint,
  AWS_REGION: eks.hubCluster.region,
  AWS_EC2_METADATA_DISABLED: 'true',
  NODE_EXTRA_CA_CERTS: eks.hub.authorityFiles.cert,
})

const keysOf = ({ accessKeyId, secretAccessKey }: Credentials): Record<string, string> => ({
  AWS_ACCESS_KEY_ID: accessKeyId,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
})

/** The specification's rights. The local AWS keeps everything in the partition `aws`, and looks for rights there. */
const personsPolicy = ({ hubCluster }: LocalEks, { access }: LocalEksOptions) => {
  const policy = creatorAccessPolicy(hubCluster, { accessEntries: access !== 'aws-auth' })
  const kept = JSON.stringify(policy).replaceAll(/arn:aws-[a-z-]+:iam/g, 'arn:aws:iam')
  return JSON.parse(kept) as typeof policy
}

const kubeconfigBy = (plane: ControlPlane, arn: string): string => {
  const { cert, key } = plane.clientCertificate({ user: 'ada', groups: ['system:masters'] })
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const path = join(plane.folder, 'by-arn.kubeconfig')
  const cluster = { server: plane.server, 'certificate-authority-data': base64(plane.ca) }
  const user = { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: arn, cluster }],
    users: [{ name: arn, user }],
    contexts: [{ name: arn, context: { cluster: arn, user: arn } }],
    'current-context': arn,
  }
  writeFileSync(path, JSON.stringify(config), { mode: 0o600 })
  return path
}

interface JobSpec {
  template: { spec: { containers: { args: string[] }[] } }
}
const batch = <T extends KubeObject>(kind: string, plural: string) =>
  resource<T>({ group: 'batch', version: 'v1', kind, plural, namespaced: true })
const CronJob = batch<KubeObject & { spec: { jobTemplate: { spec: JobSpec } } }>('CronJob', 'cronjobs')
const Job = batch<KubeObject & { spec: JobSpec }>('Job', 'jobs')

/** What the hub's CronJob does at its hour, now, and without the quarter of an hour that it gives a cluster that has left. */
export const runCleanup = async (plane: ControlPlane): Promise<void> => {
  const namespace = 'open-cluster-management-hub'
  const client = plane.client()
  const { spec } = (await client.of(CronJob, namespace).get('cluster-manager-cleanup-unjoined')).spec.jobTemplate
  const [container] = spec.template.spec.containers
  container!.args.push('--left-seconds=0')
  await client.of(Job, namespace).create({ metadata: { name: 'cleanup-now', namespace }, spec })
}
