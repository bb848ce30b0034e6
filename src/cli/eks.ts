import { parseEksClusterArn } from '../aws/index.ts'
import { UsageError } from '../main/flags.ts'

/** What is known of a cluster without asking AWS. */
export interface ClusterSigns {
  server: string
  /** `gitVersion` of /version: `v1.31.2-eks-7f9249a`. */
  gitVersion?: string | undefined
  /** How the kubeconfig calls it; `aws eks update-kubeconfig` uses the ARN. */
  clusterName?: string | undefined
  context?: string | undefined
}

const hosted = /\.eks\.amazonaws\.com(\.cn)?$/

/** Whether this is EKS, and what says so. */
export const eksSign = ({
  server,
  gitVersion = '',
  clusterName = '',
  context = '',
}: ClusterSigns): string | undefined => {
  if (gitVersion.includes('-eks-')) return `its version is ${gitVersion}`
  if (URL.canParse(server) && hosted.test(new URL(server).hostname)) return `its address is ${server}`
  const arn = [clusterName, context].find(isEksArn)
  return arn && `the kubeconfig calls it ${arn}`
}

/** An EKS cluster's ARN, or an error that names the flag and the part that is wrong. */
export const checkedEksArn = (flag: string, text: string): string => {
  try {
    parseEksClusterArn(text)
    return text
  } catch (cause) {
    throw new UsageError(`${flag}: ${(cause as Error).message}`, { cause })
  }
}

export const isEksArn = (text: string): boolean => {
  try {
    return Boolean(parseEksClusterArn(text))
  } catch {
    return false
  }
}

/** Strategies as objects hold them. */
export type Strategy = 'csr' | 'awsirsa' | 'grpc'
export const strategies: readonly Strategy[] = ['csr', 'awsirsa', 'grpc']

const supported =
  'aws-irsa is for hubs and managed clusters on EKS; csr, alone or together with aws-irsa, is for hubs that are not on EKS'

/** What speaks against the strategies of a hub; the person is warned, and may know better. */
export const strategyWarnings = (chosen: readonly Strategy[], sign: string | undefined): string[] => {
  const warnings: string[] = []
  if (sign && chosen.includes('csr'))
    warnings.push(
      `this hub is on EKS (${sign}), which signs no client certificates: use --registration-auth aws-irsa instead of csr; ${supported}`,
    )
  if (!sign && chosen.includes('awsirsa') && !chosen.includes('csr'))
    warnings.push(`this hub does not look like EKS: aws-irsa alone will let in nobody; ${supported}`)
  return warnings
}
