import { conditionType, type AWSCluster, type AWSClusterStaticIdentity } from '../../api/index.ts'
import { linksOf, type CredentialCache } from '../../aws/index.ts'
import {
  allowedNamespacesOf,
  describeAllowed,
  describeRefusal,
  identityKey,
  secretOf,
  walkChain,
  type Chain,
} from '../../identities/index.ts'
import { findCondition, timestamp } from '../../runtime/index.ts'
import type { Picture } from '../picture.ts'
import { nameOf, type AwsDirectory, type Known } from './directory.ts'

/** What is told of an identity. */
export interface IdentityFacts {
  readonly key: string
  readonly kind: string
  readonly name: string
  readonly namespace?: string | undefined
  /** What it stands on. */
  readonly source?: string | undefined
  readonly roleARN?: string | undefined
  readonly secret?: string | undefined
  /** The account that it acts in, as far as its objects tell; tried out, it is what AWS says. */
  readonly account: string
  /** Who may use it, in words. */
  readonly mayUse: string
  readonly clusters: readonly ClusterFacts[]
  /** Only when it was tried out: who AWS says it is, and when such a session ends. */
  readonly arn?: string | undefined
  readonly expires?: string | undefined
  readonly problem: string
}

export interface ClusterFacts {
  readonly name: string
  readonly account: string
  readonly problem: string
}

const { principalUsageAllowed, principalCredentialRetrieved } = conditionType.awsCluster

/** What the hub has said last about a cluster's identity; empty when all is well. */
export const lastProblem = (cluster: AWSCluster): string => {
  const wrong = [principalUsageAllowed, principalCredentialRetrieved]
    .map((type) => findCondition(cluster, type))
    .find((one) => one && one.status !== 'True')
  return wrong ? `${wrong.reason}: ${wrong.message}` : ''
}

const clusterFacts = (directory: AwsDirectory, cluster: AWSCluster): ClusterFacts => {
  const { refusal } = directory.chainOf(cluster)
  const now = refusal ? `${refusal.reason}: ${describeRefusal(refusal)}` : ''
  return { name: nameOf(cluster), account: cluster.spec?.accountID ?? '', problem: now || lastProblem(cluster) }
}

export const identityFacts = (directory: AwsDirectory, known: Known): IdentityFacts => {
  const { key, reference, namespace, identity, source } = known
  const { spec } = identity as { spec?: { roleARN?: string; secretRef?: unknown } }
  const secret = spec?.secretRef
    ? secretOf(identity as AWSClusterStaticIdentity, directory.controllerNamespace)
    : undefined
  const clusters = directory.clustersOf(key).map((cluster) => clusterFacts(directory, cluster))
  const accounts = [...new Set(clusters.map(({ account }) => account).filter(Boolean))]
  return {
    key,
    ...reference,
    namespace,
    source,
    roleARN: spec?.roleARN,
    secret: secret && `${secret.namespace}/${secret.name}`,
    account: spec?.roleARN?.split(':')[4] ?? accounts.join(','),
    mayUse:
      reference.kind === 'AWSServiceAccountIdentity'
        ? `namespace ${namespace}`
        : describeAllowed(allowedNamespacesOf(identity as never)),
    clusters,
    problem: structureProblem(directory, known),
  }
}

/** What is wrong whoever asks: something it stands on is missing, or it stands on itself. */
const structureProblem = (directory: AwsDirectory, { key, source }: Known): string => {
  const seen = new Set([key])
  for (let at = source; at;) {
    if (seen.has(at)) return `the chain comes back to ${at.replace('/', ' ')}: let one of these roles begin elsewhere`
    seen.add(at)
    const next = directory.identities.find((one) => one.key === at)
    if (!next) return `${at.replace('/', ' ')}, which it stands on, does not exist`
    at = next.source
  }
  return ''
}

/** A chain that ends in this identity and is allowed: for a cluster that uses it, or for some namespace that might. */
const chainFor = (directory: AwsDirectory, known: Known, region: string): Chain | undefined => {
  const asked = [
    ...directory.clustersOf(known.key).map((cluster) => ({
      namespace: cluster.metadata.namespace!,
      region: directory.regionOf(cluster),
    })),
    ...(known.namespace ? [known.namespace] : directory.namespaces).map((namespace) => ({ namespace, region })),
  ]
  for (const one of asked) {
    const chain = walkChain(directory, { ...one, reference: known.reference, established: true })
    if (chain.recipe) return chain
  }
  return undefined
}

/** Tries every identity that somebody may use, and adds what AWS says. */
export const triedOut = async (
  directory: AwsDirectory,
  all: readonly IdentityFacts[],
  cache: CredentialCache,
  { region, signal }: { region: string; signal: AbortSignal },
): Promise<IdentityFacts[]> => {
  const found = new Map<string, Partial<IdentityFacts>>()
  for (const known of directory.identities) {
    const chain = chainFor(directory, known, region)
    if (!chain?.recipe) continue
    const at = (link: number): string => identityKey(chain.links[link]!.reference, known.namespace ?? '')
    try {
      const { expiration } = await cache.get(chain.recipe, signal)
      const { account, arn } = await cache.caller(chain.recipe, region, signal)
      found.set(known.key, { account, arn, ...(expiration ? { expires: timestamp(expiration) } : {}) })
    } catch (error) {
      signal.throwIfAborted()
      const failing = (error as { link?: string }).link
      const culprit = linksOf(chain.recipe).findIndex((link) => failing !== undefined && isLink(link, failing))
      const through = culprit > 0 ? `${at(culprit).replace('/', ' ')}, which it stands on: ` : ''
      found.set(known.key, { problem: `${through}${(error as Error).message}` })
    }
  }
  return all.map((facts) => ({
    ...facts,
    ...found.get(facts.key),
    problem: found.get(facts.key)?.problem ?? facts.problem,
  }))
}

const isLink = (link: Parameters<typeof linksOf>[0], words: string): boolean =>
  link.kind === 'role' || link.kind === 'serviceAccount'
    ? words.includes(link.role.arn)
    : link.kind === 'static'
      ? words.includes(`${link.secret.namespace}/${link.secret.name}`)
      : words.includes('controller')

/** The identities as a tree: what begins a chain first, what stands on it below, and the clusters as leaves. */
export const treeText = (all: readonly IdentityFacts[]): string => {
  if (all.length === 0) return 'There are no AWS identities.\n'
  const keys = new Set(all.map(({ key }) => key))
  const shown = new Set<string>()
  const lines: string[] = []
  const draw = (facts: IdentityFacts, before: string, branch: string): void => {
    if (shown.has(facts.key)) return
    shown.add(facts.key)
    lines.push(`${before}${branch}${headOf(facts)}`)
    const under = before + (branch === '' ? '' : branch.startsWith('├') ? '│  ' : '   ')
    const notes = [`may be used by ${facts.mayUse}`, ...(facts.problem ? [`problem: ${facts.problem}`] : [])]
    const children = all.filter((one) => one.source === facts.key && !shown.has(one.key))
    const count = facts.clusters.length + children.length
    for (const note of notes) lines.push(`${under}${count > 0 ? '│' : ' '}    ${note}`)
    for (const [at, cluster] of facts.clusters.entries()) {
      const last = at === count - 1
      const account = cluster.account ? `, account ${cluster.account}` : ''
      lines.push(`${under}${last ? '└─ ' : '├─ '}AWSCluster ${cluster.name}${account}`)
      if (cluster.problem) lines.push(`${under}${last ? '   ' : '│  '}     problem: ${cluster.problem}`)
    }
    for (const [at, child] of children.entries()) draw(child, under, at === children.length - 1 ? '└─ ' : '├─ ')
  }
  for (const root of all.filter(({ source }) => source === undefined || !keys.has(source))) draw(root, '', '')
  // What is left stands on itself.
  for (const rest of all) draw(rest, '', '')
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`
}

const headOf = ({ kind, namespace, name, roleARN, secret, account, expires }: IdentityFacts): string =>
  [
    `${kind} ${namespace ? `${namespace}/` : ''}${name}`,
    ...(roleARN ? [roleARN] : []),
    ...(secret ? [`access key in secret ${secret}`] : []),
    ...(account ? [`account ${account}`] : []),
    ...(expires ? [`until ${expires}`] : []),
  ].join(', ')

/** Chains as arrows from where they begin to the clusters that use them. */
export const identitiesPicture = (all: readonly IdentityFacts[]): Picture => {
  const nodes: Picture['nodes'][number][] = []
  const edges: Picture['edges'][number][] = []
  const known = new Set(all.map(({ key }) => key))
  for (const facts of all) {
    const frame = facts.account ? `account ${facts.account}` : undefined
    const label = [headOf({ ...facts, account: '' }).replaceAll(', ', '\n'), `for ${facts.mayUse}`].join('\n')
    nodes.push({ id: facts.key, label, frame, bad: Boolean(facts.problem) })
    if (facts.source) {
      if (!known.has(facts.source)) {
        known.add(facts.source)
        nodes.push({ id: facts.source, label: `${facts.source.replace('/', ' ')}\n(missing)`, bad: true })
      }
      edges.push({ from: facts.source, to: facts.key, label: 'assumes', faint: Boolean(facts.problem) })
    }
    for (const cluster of facts.clusters) {
      nodes.push({
        id: `cluster ${cluster.name}`,
        label: `AWSCluster\n${cluster.name}`,
        shape: 'round',
        bad: Boolean(cluster.problem),
      })
      edges.push({ from: facts.key, to: `cluster ${cluster.name}`, faint: Boolean(cluster.problem) })
    }
  }
  return { nodes, edges }
}
