import { annotation, type ManagedCluster } from '../../../api/index.ts'
import {
  AwsInputError,
  eksClusterArn,
  parseEksClusterArn,
  roleSuffix,
  type ClusterPair,
  type EksCluster,
} from '../../../aws/index.ts'
import { firstOf, type Reason } from '../../../runtime/index.ts'

/** What a ManagedCluster says about its EKS cluster. The agent wrote it: it is a claim, and AWS lets only the true one use it. */
export interface Claim {
  readonly pair: ClusterPair
  readonly arn: string
}

interface Said {
  name: string
  hub: EksCluster
  arns: string[]
  suffix: string | undefined
  managed: EksCluster | undefined
  problem: string | undefined
}

const arnAnnotations = [annotation.eksManagedClusterArn, annotation.managedClusterArn] as const

/** Whether a cluster asks to be known by AWS IAM: by the specification's annotation, or by the one of the field. */
export const claimsAnArn = ({ metadata }: ManagedCluster): boolean =>
  arnAnnotations.some((key) => metadata.annotations?.[key] !== undefined)

const rejoin = (name: string): string =>
  `let the cluster join again with its own ARN, or correct the annotation while it is not accepted: kubectl annotate managedcluster ${name} --overwrite ${annotation.eksManagedClusterArn}=…`

const refusals = firstOf<Said>([
  ({ name, arns }) =>
    arns.length === 0 && {
      reason: 'ArnMissing',
      message: `cluster ${name} has no annotation ${annotation.eksManagedClusterArn}, and this hub knows clusters by AWS IAM only; ${rejoin(name)}`,
    },
  ({ name, arns }) =>
    new Set(arns).size > 1 && {
      reason: 'ArnAmbiguous',
      message: `cluster ${name} has two ARNs that differ, in ${arnAnnotations.join(' and ')}; ${rejoin(name)}`,
    },
  ({ name, problem }) =>
    problem !== undefined && { reason: 'ArnMalformed', message: `cluster ${name}: ${problem}; ${rejoin(name)}` },
  ({ name, managed, hub }) =>
    managed!.partition !== hub.partition && {
      reason: 'OtherPartition',
      message: `cluster ${name} is in partition ${managed!.partition} and this hub in ${hub.partition}: IAM lets no role of one trust a role of the other; use a hub in the same partition`,
    },
  ({ name, managed, hub, suffix }) =>
    suffix !== undefined &&
    suffix !== roleSuffix({ hub, managed: managed! }) && {
      reason: 'OtherHub',
      message: `cluster ${name} joined for another hub: its ${annotation.managedClusterIamRoleSuffix} is not that of its ARN and of this hub, ${eksClusterArn(hub)}; join again with --eks-hub-cluster-arn ${eksClusterArn(hub)}`,
    },
])

/** The claim of a cluster, or why it is none. */
export const claimOf = (
  cluster: ManagedCluster,
  hub: EksCluster,
): { claim: Claim; refusal?: undefined } | { claim?: undefined; refusal: Reason } => {
  const { name = '', annotations = {} } = cluster.metadata
  const arns = arnAnnotations.flatMap((key) => annotations[key] ?? [])
  const { managed, problem } = parsed(arns[0])
  const suffix = annotations[annotation.managedClusterIamRoleSuffix]
  const refusal = refusals({ name, hub, arns, suffix, managed, problem })
  return refusal ? { refusal } : { claim: { pair: { hub, managed: managed! }, arn: arns[0]! } }
}

const parsed = (arn: string | undefined): { managed?: EksCluster; problem?: string } => {
  if (arn === undefined) return {}
  try {
    return { managed: parseEksClusterArn(arn) }
  } catch (error) {
    if (error instanceof AwsInputError) return { problem: error.what }
    throw error
  }
}

/** The annotations by which a cluster makes its claim, for all hubs that there are. */
export const claimAnnotations = (pair: ClusterPair): Record<string, string> => ({
  [annotation.eksManagedClusterArn]: eksClusterArn(pair.managed),
  [annotation.managedClusterArn]: eksClusterArn(pair.managed),
  [annotation.managedClusterIamRoleSuffix]: roleSuffix(pair),
})
