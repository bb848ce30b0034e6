import type { ManagedClusterAddOn } from '../../api/index.ts'
import { isForbidden, isNotFound, type Secret } from '../../kube/index.ts'
import { describeError, inParallel, type Reconcile } from '../../runtime/index.ts'
import { installNamespaceOf } from '../contract.ts'
import type { Item, Keeper, Standing } from '../drivers/index.ts'
import type { AddOnAgent } from './agent.ts'
import { healthOf } from './health.ts'
import { planOf } from './plan.ts'
import { askAgainMs, conditionOf, declare, knowsTokens, report, type Stood, type Told } from './status.ts'

const credentialsAtOnce = 4

/** Gives one add-on the credentials that it asks for, and takes away those that it no longer does. */
export const register =
  (agent: AddOnAgent): Reconcile =>
  async (name, signal) => {
    const addOn = agent.addOnOf(name)
    if (!addOn) return forget(agent, name, signal)
    const plan = planOf(addOn, agent)
    const told = { plan, lease: await agent.leases.of(name, installNamespaceOf(addOn)) }
    const declared = await declare(agent, addOn, told, signal)
    const items = plan.items.filter((item) => item.driver !== 'token' || knowsTokens(agent, declared))
    const stood = await standings(agent, declared, items, signal)
    await removeOthers(agent, name, plan.items, signal)
    await report(agent, declared, { ...told, stood }, signal)
    const failed = stood.find(({ error }) => error !== undefined)
    if (failed) throw failed.error
    return { requeueAfterMs: nextLook(agent, declared, told, stood) }
  }

/** The add-on is gone from the hub: nothing of its credentials stays here. */
const forget = async (agent: AddOnAgent, name: string, signal: AbortSignal): Promise<object> => {
  await agent.instancesOf(name, [])
  agent.written.forget(name)
  await removeOthers(agent, name, [], signal)
  return {}
}

/** Looks at each credential. One that fails does not keep the others from theirs. */
const standings = async (
  agent: AddOnAgent,
  addOn: ManagedClusterAddOn,
  items: readonly Item[],
  signal: AbortSignal,
): Promise<Stood[]> => {
  const instances = await agent.instancesOf(addOn.metadata.name!, items)
  const stood = new Map<Item, Stood>()
  await inParallel(
    credentialsAtOnce,
    instances.map(({ item, keeper }) => async () => {
      stood.set(item, { item, ...(await standing(agent, addOn, item, keeper, signal)) })
    }),
  )
  return instances.map(({ item }) => stood.get(item)!)
}

const standing = async (
  agent: AddOnAgent,
  addOn: ManagedClusterAddOn,
  item: Item,
  keeper: Keeper,
  signal: AbortSignal,
): Promise<Standing> => {
  const failed = (message: string) => conditionOf(item).failed(message)
  const namespace = agent.namespaces.get(item.namespace)
  // Asked before anything is requested of the hub that would have no place to go.
  if (!namespace || namespace.metadata.deletionTimestamp)
    return { condition: failed(noPlace(item)), lookAgainAt: Infinity }
  try {
    return await keeper.look({ addOn, present: await agent.secrets.present(item, signal), signal })
  } catch (error) {
    signal.throwIfAborted()
    return { condition: failed(whyNotKept(item, error)), lookAgainAt: Infinity, error }
  }
}

const noPlace = ({ namespace, addOn }: Item): string =>
  `namespace ${namespace}, where add-on ${addOn} is installed, does not exist on this cluster; the credential is written as soon as it does`

const whyNotKept = (item: Item, error: unknown): string => {
  if (isNotFound(error)) return noPlace(item)
  const place = `secret ${item.namespace}/${item.secret} on this cluster could not be read or written`
  const next = isForbidden(error) ? '; the agent needs get, create, patch and delete for secrets there' : ''
  return `${place}: ${describeError(error)}${next}`
}

/** Removes the secrets that no item wants, and those of a place that the add-on has left, once the new one is there. */
const removeOthers = async (
  { secrets }: AddOnAgent,
  name: string,
  items: readonly Item[],
  signal: AbortSignal,
): Promise<void> => {
  const isWanted = ({ metadata }: Secret): boolean =>
    items.some((item) => item.secret === metadata.name && (item.namespace === metadata.namespace || !secrets.has(item)))
  for (const secret of secrets.of(name)) if (!isWanted(secret)) await secrets.remove(secret, signal)
}

const nextLook = (
  { clock, undeclared }: AddOnAgent,
  addOn: ManagedClusterAddOn,
  { lease }: Told,
  stood: readonly Stood[],
): number | undefined => {
  const askedAt = undeclared.get(addOn.metadata.uid!)
  const at = Math.min(
    ...stood.map(({ lookAgainAt }) => lookAgainAt),
    healthOf(addOn, lease, clock.now())?.until ?? Infinity,
    askedAt === undefined ? Infinity : askedAt + askAgainMs,
  )
  return at === Infinity ? undefined : Math.max(at - clock.now(), 1)
}
