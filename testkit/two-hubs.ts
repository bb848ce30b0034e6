import assert from 'node:assert/strict'
import { createCluster } from './aws-network.ts'
import { startControlPlane, type ControlPlane } from './control-plane.ts'
import { createKeys, hubNamespace, namespace, staticReference } from './identity-hub.ts'
import { clusterctl } from './move-scene.ts'
import { runCli, type CliResult } from './run-cli.ts'
import { AWSCluster, AWSClusterStaticIdentity, Cluster, crds, installCrds } from '../src/api/index.ts'
import { ClusterRole, ClusterRoleBinding, type Client } from '../src/kube/index.ts'
import { systemClock, type Clock } from '../src/runtime/index.ts'

/** Two management clusters that clusters are moved between. */
export interface TwoHubs {
  one: ControlPlane
  two: ControlPlane
  here: Client
  there: Client
  stop: () => Promise<unknown>
}

/** Our kinds on two control planes. Garbage is collected on the second one, if that is the point. */
export const startTwoHubs = async ({ garbage = false } = {}): Promise<TwoHubs> => {
  const [one, two] = await Promise.all([
    startControlPlane({ controllerManager: false, audit: false }),
    startControlPlane({ controllerManager: garbage, audit: false }),
  ])
  const [here, there] = [one.client(), two.client()]
  await Promise.all(
    [here, there].map(async (client) => {
      await installCrds(client, crds({ conversion: 'none', borrowed: true }))
      await namespace(client, hubNamespace)
    }),
  )
  return { one, two, here, there, stop: () => Promise.all([one.stop(), two.stop()]) }
}

/** Lets a person do this to everything, and nothing else. */
export const letAda = async (client: Client, verbs: string[]): Promise<void> => {
  const metadata = { name: 'ada' }
  const rules = [{ apiGroups: ['*'], resources: ['*'], verbs }]
  if (await client.of(ClusterRole).find('ada')) {
    await client.of(ClusterRole).patch('ada', { merge: { rules } })
    return
  }
  await client.of(ClusterRole).create({ metadata, rules })
  await client.of(ClusterRoleBinding).create({
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'ada' },
    subjects: [{ kind: 'User', name: 'ada', apiGroup: 'rbac.authorization.k8s.io' }],
  })
}

const flags = ['--hub-namespace', hubNamespace]

type Side = Pick<ControlPlane, 'kubeconfig'>

/** It went well; answers what it printed. */
export const moved = async (words: readonly string[], from: Side, to?: Side): Promise<string> => {
  const { code, out, err } = await clusterctl([...flags, ...words], from, to)
  assert.equal(code, 0, `${err}${out}`)
  return out
}

/** Everything on a side that a move could have touched in a namespace. */
const versionsIn = async (client: Client, space: string): Promise<string[]> => {
  const lists = await Promise.all([Cluster, AWSCluster].map((kind) => client.of(kind as typeof Cluster, space).list()))
  return lists.flatMap(({ items }, at) =>
    items.map(({ metadata }) => `${at} ${metadata.uid} ${metadata.resourceVersion}`),
  )
}

/** Refused with these words, and nothing was paused, made or changed on either side. */
export const refused = async (
  { one, two, here, there }: TwoHubs,
  words: readonly string[],
  says: RegExp,
  { from = one, to = two }: { from?: Side; to?: Side } = {},
): Promise<string> => {
  const space = words[words.indexOf('-n') + 1]!
  const before = await Promise.all([versionsIn(here, space), versionsIn(there, space)])
  const { code, err, out } = await clusterctl([...flags, ...words], from, to)
  assert.equal(code, 1, out)
  assert.match(err, says)
  assert.match(err, /nothing was changed/)
  assert.doesNotMatch(err, /very-secret/)
  assert.deepEqual(await Promise.all([versionsIn(here, space), versionsIn(there, space)]), before)
  return err
}

/** A move that is under way. */
export interface Moving {
  /** Waits until it has said this, and fails when it ends without. */
  said: (what: RegExp) => Promise<void>
  result: Promise<CliResult>
}

/** Begins a move. `onSaid` acts on what it says before it goes on. */
export const beginMove = (
  words: readonly string[],
  from: Side,
  to: Side,
  { onSaid = () => {}, clock = systemClock }: { onSaid?: (text: string) => unknown; clock?: Clock } = {},
): Moving => {
  let text = ''
  const waiting = new Set<() => void>()
  const onErr = (news: string): void => {
    text += news
    onSaid(news)
    for (const look of waiting) look()
  }
  const args = ['move', ...flags, ...words, '--kubeconfig', from.kubeconfig, '--to-kubeconfig', to.kubeconfig]
  const result = runCli(args, { program: 'clusterctl', clock, onErr })
  const said = (what: RegExp): Promise<void> => {
    const heard = Promise.withResolvers<void>()
    const look = (): void => {
      if (what.test(text)) heard.resolve()
    }
    waiting.add(look)
    look()
    void result.then(({ err }) => heard.reject(new Error(`it ended without saying ${String(what)}: ${err}`)))
    return heard.promise.finally(() => waiting.delete(look))
  }
  return { said, result }
}

export const keysOf = (id: string) => ({ accessKeyId: `AKIA${id}`, secretAccessKey: `very-secret-${id}` })

export interface UnseenOptions {
  /** Of the namespace. */
  labels?: Record<string, string>
  allowedNamespaces?: object
  /** Of the identity; in the hub's namespace and named in full unless said otherwise. */
  secretRef?: string | { namespace: string; name: string }
  /** More of the AWSCluster. */
  spec?: AWSCluster['spec']
}

/** A cluster with a key of its own, on a hub where nobody ever looked at it. Answers the name of its identity and Secret. */
export const unseen = async (client: Client, key: string, options: UnseenOptions = {}): Promise<string> => {
  const name = key.replace('/', '-')
  const { labels = {}, allowedNamespaces = {}, secretRef = { namespace: hubNamespace, name } } = options
  await namespace(client, key.split('/')[0]!, labels)
  const space = typeof secretRef === 'string' ? hubNamespace : secretRef.namespace
  await namespace(client, space)
  await createKeys(client, `${space}/${name}`, keysOf(name))
  await client.of(AWSClusterStaticIdentity).create({ metadata: { name }, spec: { allowedNamespaces, secretRef } })
  await createCluster(client, key, { spec: { identityRef: staticReference(name) as never, ...options.spec } })
  return name
}
