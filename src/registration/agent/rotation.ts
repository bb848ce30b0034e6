import { describeError, type Clock, type ConditionState, type Logger, type Metrics } from '../../runtime/index.ts'
import type { Api } from '../../kube/index.ts'
import { CertificateRotated } from '../contract.ts'
import type { AgentDriver, AgentIdentity, ObtainContext, SecretData } from '../drivers/driver.ts'
import type { HubSecret } from './hub-secret.ts'
import { backoffMs, sleepUntil } from './patience.ts'

export interface RotationOptions {
  hub: Api
  identity: AgentIdentity
  driver: AgentDriver
  secret: HubSecret
  /** What goes into the ManagedCluster's status. */
  report: (condition: ConditionState) => void
  clock: Clock
  random: () => number
  log: Logger
  metrics: Metrics
}

/** However the clocks of hub and cluster disagree, renewals are at least this far apart. */
const leastApartMs = 30_000
const firstRetryMs = 10_000
const longestRetryMs = 600_000

/**
 * Keeps the credential fresh: sleeps until the driver says that it is time, and renews. The old one stays in the secret, and
 * in use, until the new one takes its place. There is one loop, so there is never more than one renewal under way.
 */
export const rotation = async (options: RotationOptions, signal: AbortSignal): Promise<void> => {
  const { driver, secret, clock, random, log, metrics } = options
  const total = metrics.counter('lanyard_agent_renewals_total', 'Renewals of the credential for the hub by result')
  let failures = 0
  let notBefore = -Infinity
  while (!signal.aborted) {
    const data = secret.data
    const dueAt = Math.max(driver.renewAt(data, random), notBefore)
    // A credential that somebody else put there has a time of its own.
    if (!(await untilDue(secret, data, dueAt, clock, signal))) continue
    try {
      await renew(options, data, signal)
      total.inc({ result: 'renewed' })
      failures = 0
      notBefore = clock.now() + leastApartMs
      log.info('the credential was renewed', { expires: expiryText(driver, secret.data) })
    } catch (error) {
      if (signal.aborted) return
      total.inc({ result: 'failed' })
      notBefore = clock.now() + backoffMs(++failures, random, firstRetryMs, longestRetryMs)
      log.warn('the credential could not be renewed; trying again', { error, failures })
    }
  }
}

/** False when the secret changed first, or the signal came. */
const untilDue = async (
  secret: HubSecret,
  data: SecretData,
  dueAt: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> => {
  const changed = new AbortController()
  const stop = (): void => changed.abort()
  const off = secret.on(() => secret.data !== data && stop())
  signal.addEventListener('abort', stop, { once: true })
  try {
    if (secret.data !== data || signal.aborted) return false
    await sleepUntil(clock, dueAt, changed.signal)
    return true
  } catch {
    return false
  } finally {
    off()
    signal.removeEventListener('abort', stop)
  }
}

const renew = async (options: RotationOptions, present: SecretData, signal: AbortSignal): Promise<void> => {
  const { driver, secret, report } = options
  let told = false
  const context = obtainContext(options, present, signal, (state) => {
    if (!('condition' in state)) return
    told = true
    report(state.condition)
  })
  try {
    await secret.write(await driver.obtain(context), signal)
  } catch (error) {
    if (!told && !signal.aborted && driver.expiresAt(present) !== undefined)
      report(CertificateRotated.failed(`the credential could not be renewed: ${describeError(error)}`))
    throw error
  }
}

/** What a driver gets to work with, at first and for each renewal. */
export const obtainContext = (
  { hub, identity, secret, clock, random, log }: Omit<RotationOptions, 'report' | 'metrics' | 'driver'>,
  present: SecretData,
  signal: AbortSignal,
  report: ObtainContext['report'],
): ObtainContext => ({
  identity,
  hub,
  present,
  save: (change) => secret.write(change, signal),
  report,
  clock,
  random,
  log,
  signal,
})

const expiryText = (driver: AgentDriver, data: SecretData): string => {
  const at = driver.expiresAt(data)
  return at === undefined ? 'never' : new Date(at).toISOString()
}
