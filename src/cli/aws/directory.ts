/** The AWS identities of a management cluster and who stands on them, as lists that a command has fetched. */
import { AWSCluster } from '../../api/index.ts'
import { AwsError, CredentialCache, type CacheOptions, type Recipe } from '../../aws/index.ts'
import {
  AccessKeys,
  accountTokens,
  askedBy,
  identityKey,
  identityOfCluster,
  identityResources,
  sourceOf,
  walkChain,
  type Chain,
  type Directory,
  type Identity,
  type IdentityKind,
  type IdentityReference,
} from '../../identities/index.ts'
import { isNotFound, Namespace, ServiceAccount, type Client, type KubeObject, type Resource } from '../../kube/index.ts'
import { UsageError, type Flags } from '../../main/flags.ts'
import type { Cli } from '../command.ts'
import { CliError } from '../errors.ts'
import { missing } from '../names.ts'
import type { AwsSession } from './session.ts'

export const hubNamespaceFlag = {
  'hub-namespace': {
    help: 'Where the hub runs: plain names of Secrets are looked for there',
    default: 'open-cluster-management-hub',
    value: 'NAME',
  },
} as const satisfies Flags

/** One identity, under the key by which others name it. */
export interface Known {
  readonly key: string
  readonly reference: IdentityReference
  readonly namespace?: string | undefined
  readonly identity: Identity
  /** The key of what it stands on. */
  readonly source?: string | undefined
}

export interface AwsDirectory extends Directory {
  readonly identities: readonly Known[]
  readonly clusters: readonly AWSCluster[]
  readonly namespaces: readonly string[]
  chainOf(cluster: AWSCluster): Chain
  regionOf(cluster: AWSCluster): string
  clustersOf(key: string): AWSCluster[]
}

export const readDirectory = async (
  cli: Cli<typeof hubNamespaceFlag>,
  client: Client,
  defaultRegion: string,
): Promise<AwsDirectory> => {
  const { signal } = cli
  const listed = async <T extends KubeObject>(kind: Resource<T>): Promise<T[]> => {
    try {
      return (await client.of(kind).list({ signal })).items
    } catch (error) {
      if (!isNotFound(error)) throw error
      throw new CliError(`${client.connection.server} knows no ${kind.plural}.${kind.group}`, {
        next: 'choose the management cluster with --context or --kubeconfig; its hub needs --feature-gates=AWSIdentities=true',
        cause: error,
      })
    }
  }
  const kinds = Object.entries(identityResources) as [IdentityKind, Resource<Identity>][]
  const [clusters, namespaces, ...lists] = await Promise.all([
    listed(AWSCluster),
    listed(Namespace),
    ...kinds.map(([, kind]) => listed(kind)),
  ])
  const identities = kinds.flatMap(([kind], at) => (lists[at] ?? []).map((identity) => knownAs(kind, identity)))
  const byKey = new Map(identities.map((known) => [known.key, known.identity]))
  const spaces = new Map(namespaces.map(({ metadata }) => [metadata.name!, metadata.labels ?? {}]))
  const directory: Directory = {
    controllerNamespace: cli.flags['hub-namespace'],
    identity: (key) => byKey.get(key),
    namespace: (name) => {
      const labels = spaces.get(name)
      return labels && { name, labels }
    },
  }
  return {
    ...directory,
    identities,
    clusters: clusters.toSorted((a, b) => nameOf(a).localeCompare(nameOf(b))),
    namespaces: [...spaces.keys()].toSorted(),
    chainOf: (cluster) => walkChain(directory, askedBy({ ...directory, defaultRegion }, cluster)),
    regionOf: (cluster) => cluster.spec?.region || defaultRegion,
    clustersOf: (key) => clusters.filter((cluster) => identityOfCluster(cluster) === key),
  }
}

const knownAs = (kind: IdentityKind, identity: Identity): Known => {
  const { name = '', namespace } = identity.metadata
  const reference = { kind, name }
  const source = sourceOf(reference, identity)
  return {
    key: identityKey(reference, namespace ?? ''),
    reference,
    namespace,
    identity,
    source: source && identityKey(source, ''),
  }
}

export const nameOf = ({ metadata }: AWSCluster): string => `${metadata.namespace}/${metadata.name}`

/** The cluster that `ns/name` means. */
export const clusterNamed = async (directory: AwsDirectory, word: string): Promise<AWSCluster> => {
  const [namespace, name, more] = word.split('/')
  if (!namespace || !name || more !== undefined)
    throw new UsageError(`${JSON.stringify(word.slice(0, 200))} is no AWSCluster; write NAMESPACE/NAME`)
  const found = directory.clusters.find((cluster) => nameOf(cluster) === word)
  if (found) return found
  throw await missing('AWSCluster', word, directory.clusters.map(nameOf))
}

/** Gets credentials by recipe, as the hub does; where a chain begins with the hub's own, the person's take their place. */
export const credentialsFor = (client: Client, { aws, own }: AwsSession): CredentialCache => {
  const keys = new AccessKeys(client)
  return new CredentialCache({
    aws,
    controller: own,
    secret: (secret, signal) => keys.read(secret, signal),
    token: tokensFor(client),
  })
}

/** As the hub asks for tokens, but for what it creates: whoever only looks changes nothing. */
const tokensFor = (client: Client): CacheOptions['token'] => {
  const ask = accountTokens(client)
  return async (wanted, signal) => {
    const { namespace, name } = wanted.account
    if (await client.of(ServiceAccount, namespace).find(name, { signal })) return ask(wanted, signal)
    throw new AwsError({
      reason: 'SourceFailed',
      message: `service account ${namespace}/${name} does not exist`,
      next: 'the hub creates it when a cluster uses the identity: see that it runs, with the feature gate AWSIdentities',
    })
  }
}

/** Whose credentials a chain begins with. */
export const beginsWithOwn = (recipe: Recipe): boolean =>
  recipe.kind === 'role' ? beginsWithOwn(recipe.source) : recipe.kind === 'controller'
