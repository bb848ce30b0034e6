import { ClusterManager } from '../../api/index.ts'
import { parseEksClusterArn, type EksCluster } from '../../aws/index.ts'
import { isNotFound } from '../../kube/index.ts'
import { UsageError, type Flags } from '../../main/flags.ts'
import { namespace } from '../../operator/contract.ts'
import { accessOf, parseTags, type Access } from '../../registration/drivers/index.ts'
import type { Cluster } from '../cluster.ts'
import type { Cli } from '../command.ts'
import { checkedEksArn, isEksArn } from '../eks.ts'
import { CliError } from '../errors.ts'
import { checkedName } from '../names.ts'

/** For commands that give clusters access by AWS IAM. */
export const awsIrsaFlags = {
  'hub-cluster-arn': {
    help: 'With aws-irsa: the ARN of this hub, where neither its ClusterManager nor the kubeconfig says it',
    default: '',
    value: 'ARN',
    aliases: ['eks-hub-cluster-arn'],
  },
  'aws-access': {
    help: 'With aws-irsa: how the hub maps roles, aws-auth or access-entries; EKS is asked unless told',
    default: 'auto',
    value: 'HOW',
    choices: ['auto', 'aws-auth', 'access-entries'],
  },
  'hub-namespace': {
    help: 'With aws-irsa: where the hub runs and writes down what clusters have, where no ClusterManager runs it',
    default: '',
    value: 'NAME',
  },
} as const satisfies Flags

/** What the hub's own controller was told, so that both make the same. */
export interface HubAwsSettings {
  readonly hub: EksCluster
  /** Where the records are: in another place, the controller would not know of what was made, and never remove it. */
  readonly namespace: string
  readonly tags: Record<string, string>
  readonly access: Access | undefined
}

/** From the ClusterManager; on a hub that no operator runs, from the flags or the name by which the kubeconfig calls it. */
export const hubAwsSettings = async (cli: Cli<typeof awsIrsaFlags>, cluster: Cluster): Promise<HubAwsSettings> => {
  const said = cli.flags['hub-cluster-arn'] && checkedEksArn('--hub-cluster-arn', cli.flags['hub-cluster-arn'])
  const access = accessOf(cli.flags['aws-access'])
  const place = cli.flags['hub-namespace'] && checkedName('--hub-namespace', cli.flags['hub-namespace'])
  const [manager] = await managersOn(cli, cluster)
  if (!manager) {
    const arn = said || [cluster.clusterName, cluster.context].find(isEksArn)
    if (arn) return { hub: parseEksClusterArn(arn), namespace: place || namespace.hub, tags: {}, access }
    throw new UsageError(
      '--hub-cluster-arn is missing: aws-irsa needs the ARN of this hub, and neither a ClusterManager nor the kubeconfig says it',
    )
  }
  if (place && place !== namespace.hub)
    throw new UsageError(
      `--hub-namespace says ${place}, and ClusterManager ${manager.metadata.name} runs its hub in ${namespace.hub}`,
    )
  const drivers = manager.spec?.registrationConfiguration?.registrationDrivers ?? []
  const driver = drivers.find(({ authType }) => authType === 'awsirsa')
  if (!driver)
    throw new CliError(
      `this hub does not take aws-irsa: its ClusterManager ${manager.metadata.name} has ${drivers.map(({ authType }) => authType).join(', ') || 'csr'} only`,
      { next: `turn it on: ${cli.program} init --registration-auth aws-irsa; or let the cluster join with csr` },
    )
  const arn = driver.awsirsa?.hubClusterArn ?? ''
  if (said && arn && said !== arn)
    throw new UsageError(`--hub-cluster-arn says ${said}, and ClusterManager ${manager.metadata.name} says ${arn}`)
  if (!said && !arn)
    throw new UsageError(
      `--hub-cluster-arn is missing: ClusterManager ${manager.metadata.name} does not say the ARN either`,
    )
  const tags = parseTags(driver.awsirsa?.tags ?? [])
  return { hub: parseEksClusterArn(arn || said), namespace: namespace.hub, tags, access }
}

const managersOn = async (cli: Cli, { client }: Cluster): Promise<ClusterManager[]> =>
  client
    .of(ClusterManager)
    .list({ signal: cli.signal })
    .then(({ items }) => items)
    .catch((error: unknown) => {
      if (isNotFound(error)) return []
      throw error
    })
