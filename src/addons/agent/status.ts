import { ManagedClusterAddOn } from '../../api/index.ts'
import { isInvalid, isNotFound, type Lease } from '../../kube/index.ts'
import { waiting, type ConditionState } from '../../runtime/index.ts'
import { AddOnCertificateRotated, kubeClientOf, TokenRefreshed } from '../contract.ts'
import type { Item, Standing } from '../drivers/index.ts'
import { isOutdated, type Operation } from '../status-changes.ts'
import type { AddOnAgent } from './agent.ts'
import { healthOf } from './health.ts'
import type { Plan } from './plan.ts'
import { conditionsFrom, statusPatch } from './report.ts'

/** A hub that dropped the driver is asked again after this: it may have been upgraded. */
export const askAgainMs = 600_000

/** How an item stands. */
export type Stood = Standing & { readonly item: Item }

/** What is to be told of an add-on beside its items' standings. */
export interface Told {
  readonly plan: Plan
  readonly lease: Lease | undefined
}

/** The condition that the driver of an item writes. */
export const conditionOf = ({ driver }: Item) => (driver === 'token' ? TokenRefreshed : AddOnCertificateRotated)

/** Says which driver and subject are used, before anything is done with them that relies on it. */
export const declare = async (
  agent: AddOnAgent,
  addOn: ManagedClusterAddOn,
  told: Told,
  signal: AbortSignal,
): Promise<ManagedClusterAddOn> => {
  if (canWait(addOn, told.plan) || !knowsDrivers(agent, addOn)) return addOn
  const { registrations, items, problems } = told.plan
  // What is said of another driver is taken away along with it; all else is told after the first look.
  const silent = new Set(items.map((item) => conditionOf(item).type))
  const states = [...conditionsFrom([], problems), ...health(agent, addOn, told)]
  const patch = statusPatch(addOn, { registrations, states, silent }, agent.clock.now())
  return (patch && (await writeDeclared(agent, addOn, { registrations, patch }, signal))) ?? addOn
}

/**
 * Whether driver and subject can be told along with the first word about the credentials, which saves a write for each add-on.
 * A token cannot be had before: the hub makes the account of the declared subject. A certificate can, unless the hub still
 * reads of the other driver and lets its request wait.
 */
const canWait = ({ status }: ManagedClusterAddOn, { items, problems }: Plan): boolean =>
  items.length > 0 &&
  problems.length === 0 &&
  items.every(({ driver }) => driver === 'csr') &&
  driverIn(status?.registrations) === undefined

/** Writes a patch that declares. Undefined when the hub takes no drivers; it is asked again later. */
const writeDeclared = async (
  agent: AddOnAgent,
  addOn: ManagedClusterAddOn,
  { registrations, patch }: { registrations: Plan['registrations']; patch: Operation[] },
  signal: AbortSignal,
): Promise<ManagedClusterAddOn | undefined> => {
  const dropped = (): unknown => agent.undeclared.set(addOn.metadata.uid!, agent.clock.now())
  try {
    const answer = await write(agent, addOn, patch, signal)
    // A CRD without the field drops it without a word.
    if (driverIn(registrations) && !driverIn(answer.status?.registrations)) dropped()
    return answer
  } catch (error) {
    if (!isInvalid(error) || !error.details.causes?.some(({ field }) => field?.startsWith('status.registrations')))
      throw error
    agent.log.warn('the hub does not take the driver of an add-on', { addOn: addOn.metadata.name, error })
    dropped()
    return undefined
  }
}

const driverIn = (registrations: Plan['registrations'] | undefined): string | undefined =>
  kubeClientOf({ metadata: {}, status: { registrations: [...(registrations ?? [])] } })?.kubeClient?.driver

const knowsDrivers = ({ undeclared, clock }: AddOnAgent, { metadata }: ManagedClusterAddOn): boolean => {
  const at = undeclared.get(metadata.uid!)
  if (at === undefined) return true
  if (clock.now() < at + askAgainMs) return false
  undeclared.delete(metadata.uid!)
  return true
}

/** Whether the hub has kept `driver: token`. */
export const knowsTokens = ({ undeclared }: AddOnAgent, { metadata, status }: ManagedClusterAddOn): boolean =>
  !undeclared.has(metadata.uid!) || driverIn(status?.registrations) === 'token'

const tooOld = TokenRefreshed.unsupported(
  'this hub does not know the driver "token": its ManagedClusterAddOn CRD dropped or refused it; upgrade the hub, or start the agent with --addon-kubeclient-registration-auth=csr',
)

/** Tells how the credentials stand, if that is news. */
export const report = async (
  agent: AddOnAgent,
  addOn: ManagedClusterAddOn,
  told: Told & { stood: readonly Stood[] },
  signal: AbortSignal,
): Promise<void> => {
  const { plan, stood } = told
  const unserved = plan.items.filter((item) => !stood.some((one) => one.item.secret === item.secret))
  const said = [
    ...stood.map(({ item, condition }) => ({ secret: item.secret, condition })),
    ...unserved.map(({ secret }) => ({ secret, condition: tooOld })),
  ]
  const states = [...conditionsFrom(said, plan.problems), ...health(agent, addOn, told)]
  const silent = new Set(stood.filter(({ condition }) => !condition).map(({ item }) => conditionOf(item).type))
  const changes = (registrations: Plan['registrations']): Operation[] | undefined =>
    statusPatch(addOn, { registrations, states, silent }, agent.clock.now())
  const hasWaited = canWait(addOn, plan) && said.some(({ condition }) => condition) && knowsDrivers(agent, addOn)
  const declaring = hasWaited ? changes(plan.registrations) : undefined
  if (declaring && (await writeDeclared(agent, addOn, { ...plan, patch: declaring }, signal))) return
  const patch = changes(addOn.status?.registrations ?? [])
  if (patch) await write(agent, addOn, patch, signal)
}

const health = ({ clock }: AddOnAgent, addOn: ManagedClusterAddOn, { lease }: Told): ConditionState[] => {
  const known = healthOf(addOn, lease, clock.now())
  return known?.condition ? [known.condition] : []
}

const write = async (
  agent: AddOnAgent,
  addOn: ManagedClusterAddOn,
  json: Operation[],
  signal: AbortSignal,
): Promise<ManagedClusterAddOn> => {
  const name = addOn.metadata.name!
  try {
    const answer = await agent.hub
      .of(ManagedClusterAddOn, agent.cluster)
      .patch(name, { json }, { subresource: 'status', signal })
    return agent.written.wrote(name, addOn, answer)
  } catch (cause) {
    agent.written.forget(name)
    if (!isOutdated(cause) && !isNotFound(cause)) throw cause
    // Somebody else wrote first, and the watch is about to bring it.
    const message = `the status of add-on ${name} has changed meanwhile`
    throw waiting('StatusChanged', { message, afterMs: 250, cause })
  }
}
