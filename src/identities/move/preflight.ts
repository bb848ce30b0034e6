import { AWSCluster } from '../../api/index.ts'
import { Namespace, type Resource, type Unstructured } from '../../kube/index.ts'
import { describeRefusal } from '../chain-checks.ts'
import { walkChain, type Directory } from '../chain.ts'
import { identityKey, identityResources, type Identity } from '../contract.ts'
import type { NamespaceFacts } from '../permission.ts'
import { askedBy } from '../records.ts'
import { questionsOf } from './account.ts'
import type { Bundle, Found, Item, Obstacle } from './bundle.ts'
import { conflictOf, missingNamespaces, refusals, takenPlaces } from './conflicts.ts'
import type { Hub } from './discover.ts'
import { isAwsCluster } from './graph.ts'
import { labelHint, spaceAfter } from './labels.ts'
import { givingUp, intoDirectory, isPausable, isPaused, markOf, nameOf } from './marks.ts'
import { outsideObstacles } from './outside.ts'
import { wantedOf, type Prepared } from './prepared.ts'
import { isLeaving } from './release.ts'
import { missingRights, type Need } from './rights.ts'
import { idThere } from './target.ts'
import { isCopy } from './translate.ts'
import { clusterNameOf, unfinishedIn } from './unfinished.ts'

/** Everything that is wrong at the source, before anybody is paused. `to` is the target's id, or a directory. */
export const sourceObstacles = async (
  source: Hub,
  bundle: Bundle,
  { to, defaultRegion, signal }: { to: string; defaultRegion: string; signal: AbortSignal },
): Promise<Obstacle[]> => {
  const moved = bundle.items.filter(({ fate }) => fate === 'move')
  const { namespace } = bundle
  const needs: Need[] = moved.flatMap(({ resource: kind }) => [
    { verb: 'patch', kind, namespace },
    ...(to === intoDirectory ? [] : [{ verb: 'delete', kind, namespace }]),
  ])
  const labels = { name: namespace, labels: bundle.labels }
  const underWay = new Set(
    moved
      .filter(({ object }) => [to, intoDirectory].includes(markOf(object, 'movingTo') ?? ''))
      .flatMap((item) => clusterNameOf(item) ?? []),
  )
  return [
    ...moved.flatMap((item) => [...beingDeleted(item, underWay), ...standing(item, to)]),
    ...unfinishedIn(bundle, underWay),
    ...chainObstacles(bundle, directoryOf(bundle.items, source.controllerNamespace, labels), 'source', defaultRegion),
    ...(await missingRights(source.client, 'source', needs, signal)),
  ]
}

/** Whose pause it is, of those that can be paused. */
const standing = ({ resource, object }: Item, to: string): Obstacle[] => {
  if (!isPausable(resource)) return []
  const name = nameOf(resource, object)
  const where = markOf(object, 'movingTo')
  if (where === givingUp(to))
    return [{ what: `the move of ${name} is being given up`, next: 'finish that first: the same command with --abort' }]
  if (where !== undefined && where !== to && where !== intoDirectory)
    return [
      {
        what: `${name} is on its way to another cluster, ${markOf(object, 'movingToServer') ?? 'which is not named'} (its namespace kube-system has uid ${where})`,
        next: 'finish that move first: run it again with the same --to-kubeconfig',
      },
    ]
  if (where === undefined && isPaused(object))
    return [
      {
        what: `${name} is paused, by somebody who wants it to be left alone`,
        next: `ask why, and end the pause first: kubectl -n ${object.metadata.namespace} ${howToUnpause(resource, object)}`,
      },
    ]
  return []
}

/** On the target nobody would know that it has to go. What an earlier run has paused may be on the target already. */
const beingDeleted = (item: Item, underWay: ReadonlySet<string>): Obstacle[] => {
  const { resource, object } = item
  if (!isLeaving(item) || markOf(object, 'movingTo')) return []
  const cluster = clusterNameOf(item) ?? ''
  const wait = 'wait until it is gone: its own hub has to remove what it has'
  return [
    {
      what: `${nameOf(resource, object)} is being deleted`,
      next: underWay.has(cluster)
        ? `a move has paused Cluster ${cluster}: give it up with --abort, then ${wait}`
        : wait,
    },
  ]
}

const howToUnpause = ({ plural, group }: Resource, { metadata, spec }: Unstructured): string =>
  (spec as { paused?: boolean } | undefined)?.paused
    ? `patch ${plural}.${group} ${metadata.name} --type=merge -p '{"spec":{"paused":null}}'`
    : `annotate ${plural}.${group} ${metadata.name} cluster.x-k8s.io/paused-`

/** Identities and the namespace as one side has them. */
const directoryOf = (found: readonly Found[], controllerNamespace: string, namespace: NamespaceFacts): Directory => {
  const identities = new Map(
    found
      .filter(({ resource }) => Object.hasOwn(identityResources, resource.kind))
      .map(({ resource, object }) => [
        identityKey({ kind: resource.kind, name: object.metadata.name! }, object.metadata.namespace ?? ''),
        object as unknown as Identity,
      ]),
  )
  return {
    controllerNamespace,
    identity: (key) => identities.get(key),
    namespace: (name) => (name === namespace.name ? namespace : undefined),
  }
}

const chainObstacles = (bundle: Bundle, directory: Directory, side: string, defaultRegion: string): Obstacle[] =>
  bundle.items
    .filter(({ resource }) => isAwsCluster(resource))
    .flatMap(({ resource, object }) => {
      const cluster = object as AWSCluster
      const { refusal, path } = walkChain(directory, askedBy({ ...directory, defaultRegion }, cluster))
      if (!refusal) return []
      return [
        {
          what: `${nameOf(resource, object)}: its identity cannot be used at the ${side} (${path})`,
          next: describeRefusal(refusal),
        },
      ]
    })

/** Everything that is wrong on the target, before anything is written there. */
export const targetObstacles = async (move: Prepared, signal: AbortSignal): Promise<Obstacle[]> => {
  const { bundle, present, target, source } = move
  if (source && source.uid === target.uid)
    return [
      { what: 'source and target are the same cluster', next: 'choose another with --to-kubeconfig or --to-context' },
    ]
  if (present.obstacles.length > 0) return [...present.obstacles]
  const after = bundle.items.map((item) => ({ item, there: present.objects.get(idThere(bundle, item, target)) }))
  const space = spaceAfter(bundle, present)
  const found = after.map(({ item, there }) => ({ resource: item.resource, object: there ?? wantedOf(move, item) }))
  const missing = await missingNamespaces(move, signal)
  const rights = await missingRights(target.client, 'target', targetNeeds(move, missing), signal)
  const conflicts = [
    ...bundle.items.flatMap((item) => conflictOf(move, item)),
    ...(rights.length === 0 ? await takenPlaces(move, signal) : []),
    ...(rights.length === 0 ? await outsideObstacles(move, signal) : []),
  ]
  return [
    ...conflicts,
    ...chainObstacles(
      bundle,
      directoryOf(found, target.controllerNamespace, space),
      'target',
      move.options.defaultRegion,
    ).map((one) => ({ ...one, next: `${one.next}${labelHint(bundle, present)}` })),
    ...rights,
    // Without the rights everything would be refused, and for that reason only.
    ...(conflicts.length === 0 && rights.length === 0 ? await refusals(move, missing, signal) : []),
  ]
}

const targetNeeds = (move: Prepared, missing: ReadonlySet<string>): Need[] => [
  ...(move.options.checkAccount ? questionsOf(move.bundle) : []).flatMap((): Need[] =>
    ['get', 'create', 'delete'].map((verb) => ({ verb, kind: AWSCluster, namespace: move.bundle.namespace })),
  ),
  ...(missing.size > 0 ? [{ verb: 'create', kind: Namespace }] : []),
  ...(move.bundle.items.some(({ resource }) => isAwsCluster(resource)) ? [{ verb: 'list', kind: AWSCluster }] : []),
  ...move.bundle.items.flatMap((item): Need[] => {
    const { resource: kind } = item
    const { namespace } = wantedOf(move, item).metadata
    const there = move.present.objects.get(idThere(move.bundle, item, move.target))
    // A copy is brought up to date; what was there before gets owners.
    const change = !there || item.fate === 'copy' ? [] : [isCopy(item, there) ? 'update' : 'patch']
    const verbs = new Set(['create', ...change, ...(isPausable(kind) ? ['patch'] : [])])
    return [...verbs].map((verb) => ({ verb, kind, namespace }))
  }),
]
