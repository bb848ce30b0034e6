import type { AWSCluster } from '../../api/index.ts'
import { AwsError, describeLink, linksOf, type CredentialCache } from '../../aws/index.ts'
import {
  allowedNamespacesOf,
  describeAllowed,
  describeReference,
  type Chain,
  type Link,
} from '../../identities/index.ts'
import { timestamp } from '../../runtime/index.ts'
import { nameOf, type AwsDirectory } from './directory.ts'
import { lastProblem } from './identity-tree.ts'

/** Whether one thing holds, and what to change where it does not. */
export interface Finding {
  readonly what: string
  readonly state: 'ok' | 'fails' | 'not tried'
  readonly message?: string | undefined
  /** Where somebody has to change something. */
  readonly where?: 'Kubernetes' | 'IAM' | 'network' | undefined
  readonly next?: string | undefined
  readonly notes?: readonly string[] | undefined
}

export interface Explanation {
  readonly cluster: string
  readonly chain: string
  /** From the cluster's own identity to where the chain begins: may it be used? */
  readonly kubernetes: readonly Finding[]
  /** From where the chain begins to the role that is used: does AWS give the credentials? */
  readonly aws: readonly Finding[]
  /** What the hub says, where it says something else. */
  readonly hub?: string | undefined
  readonly works: boolean
}

/** Walks a cluster's chain in Kubernetes, and then, with a cache, in AWS. */
export const explanationOf = async (
  directory: AwsDirectory,
  cluster: AWSCluster,
  cache: CredentialCache | undefined,
  signal: AbortSignal,
): Promise<Explanation> => {
  const chain = directory.chainOf(cluster)
  const kubernetes = chain.links.map(linkFinding)
  const aws = await awsFindings(chain, cluster, directory.regionOf(cluster), cache, signal)
  const found = [...kubernetes, ...aws].every(({ state }) => state !== 'fails')
  const said = lastProblem(cluster)
  return {
    cluster: nameOf(cluster),
    chain: chain.path,
    kubernetes,
    aws,
    ...(said ? { hub: said } : {}),
    works: found && !said,
  }
}

const linkFinding = ({ reference, identity, refusal, notes }: Link): Finding => {
  const what = describeReference(reference)
  if (refusal)
    return {
      what,
      state: 'fails',
      message: `${refusal.reason}: ${refusal.message}`,
      where: 'Kubernetes',
      next: refusal.next,
    }
  const isOwn = reference.kind === 'AWSServiceAccountIdentity'
  const message = isOwn
    ? 'is in the namespace of the cluster'
    : `allows ${describeAllowed(allowedNamespacesOf(identity as never))}`
  return { what, state: 'ok', message, notes }
}

const awsFindings = async (
  { recipe }: Chain,
  cluster: AWSCluster,
  region: string,
  cache: CredentialCache | undefined,
  signal: AbortSignal,
): Promise<Finding[]> => {
  // Credentials of a chain that is refused are never asked for, here as on the hub.
  if (!recipe) return []
  const findings: Finding[] = []
  let account: string | undefined
  for (const link of linksOf(recipe).toReversed()) {
    const what = describeLink(link)
    if (!cache || findings.some(({ state }) => state === 'fails')) {
      findings.push({ what, state: 'not tried' })
      continue
    }
    try {
      const { expiration } = await cache.get(link, signal)
      const caller = await cache.caller(link, region, signal)
      account = caller.account
      const until = expiration ? `, until ${timestamp(expiration)}` : ''
      const whose = link.kind === 'controller' ? ' (yours, in place of those of the hub)' : ''
      findings.push({ what, state: 'ok', message: `is ${caller.arn} in account ${caller.account}${until}${whose}` })
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof AwsError)) throw error
      findings.push({ what, state: 'fails', message: error.what, where: whereOf(error), next: error.next })
    }
  }
  const pinned = cluster.spec?.accountID
  if (pinned && account && findings.every(({ state }) => state === 'ok')) {
    const what = `account ${pinned} of the cluster`
    findings.push(
      pinned === account
        ? { what, state: 'ok', message: 'is the one that is reached' }
        : {
            what,
            state: 'fails',
            message: `the chain reaches account ${account}, and the cluster lives in ${pinned} (spec.accountID)`,
            where: 'Kubernetes',
            next: `name an identity of account ${pinned} in spec.identityRef`,
          },
    )
  }
  return findings
}

const whereOf = ({ reason }: AwsError): Finding['where'] => {
  if (reason === 'SourceFailed') return 'Kubernetes'
  return ['Unreachable', 'TimedOut', 'Unavailable', 'Throttled'].includes(reason) ? 'network' : 'IAM'
}

const sign = { ok: '✔', fails: '✘', 'not tried': '·' } as const

/** As a person reads it. */
export const explanationText = ({ cluster, chain, kubernetes, aws, hub, works }: Explanation): string => {
  const lines = (finding: Finding): string[] => [
    `  ${sign[finding.state]} ${finding.what}${finding.message ? `: ${finding.message}` : ''}${finding.state === 'not tried' ? ': not tried' : ''}`,
    ...(finding.next ? [`      change in ${finding.where}: ${finding.next}`] : []),
    ...(finding.notes ?? []).map((note) => `      note: ${note}`),
  ]
  return [
    `AWSCluster ${cluster}: ${chain}`,
    'In Kubernetes, may the namespace use each link?',
    ...kubernetes.flatMap(lines),
    ...(aws.length > 0
      ? ['In AWS, from where the chain begins, is each link let through?', ...aws.flatMap(lines)]
      : []),
    ...(hub ? ['The hub says:', `  ✘ ${hub}`] : []),
    works ? 'All is well.' : 'It does not work.',
    '',
  ].join('\n')
}
