import { isConflict, isNotFound, Lease, type Api } from '../../kube/index.ts'
import { microTimestamp, sleep, type Clock, type Logger, type Metrics } from '../../runtime/index.ts'
import { leaseName } from '../contract.ts'
import { backoffMs } from './patience.ts'
import { inScope } from './scope.ts'

export interface HeartbeatOptions {
  hub: Api
  cluster: string
  /** Asked before each beat. */
  leaseDurationSeconds: () => number | undefined
  /** Calls back when the duration may have changed: a shorter one cannot wait for the next beat. */
  onChange: (changed: () => void) => () => void
  /** Told when the hub has it. */
  sent?: ((at: number) => void) | undefined
  clock: Clock
  random: () => number
  log: Logger
  metrics: Metrics
}

/** Renews the lease for as long as the signal lets it. In a steady state a beat is one request. */
export const heartbeat = async (options: HeartbeatOptions, signal: AbortSignal): Promise<void> => {
  const { random, log, sent, metrics } = options
  const total = metrics.counter('lanyard_agent_heartbeats_total', 'Lease renewals by result')
  const last = metrics.gauge('lanyard_agent_heartbeat_timestamp_seconds', 'When the lease was renewed last')
  const beat = beating(options)
  for (let failures = 0; !signal.aborted;) {
    const duration = options.leaseDurationSeconds()
    const periodMs = (duration || 60) * 1000
    let wait = periodMs * (1 + random() / 4)
    try {
      const at = await beat(periodMs, signal)
      failures = 0
      total.inc({ result: 'sent' })
      last.set(at / 1000)
      sent?.(at)
    } catch (error) {
      if (signal.aborted) return
      total.inc({ result: 'failed' })
      wait = Math.min(backoffMs(++failures, random, 1000), periodMs)
      log.warn('the lease could not be renewed; trying again', { error, failures, waitMs: Math.round(wait) })
    }
    await rest(options, { duration, ms: wait }, signal)
  }
}

/** Ends early when the duration is another than the beat began with: it may have changed while the beat was under way. */
const rest = async (
  { clock, leaseDurationSeconds, onChange }: HeartbeatOptions,
  { duration, ms }: { duration: number | undefined; ms: number },
  signal: AbortSignal,
) => {
  await inScope(signal, async (scope) => {
    const changed = new Promise<void>((resolve) => {
      const look = (): unknown => leaseDurationSeconds() !== duration && resolve()
      scope.addEventListener('abort', onChange(look), { once: true })
      look()
    })
    await Promise.race([sleep(clock, ms, scope).catch(() => {}), changed])
  })
}

/** One beat. The lease is kept from beat to beat: nobody but us writes it, so it need not be read again. */
const beating = ({ hub, cluster, clock }: HeartbeatOptions) => {
  const leases = hub.of(Lease, cluster)
  let lease: Lease | undefined
  return async (periodMs: number, signal: AbortSignal): Promise<number> => {
    const call = { signal, timeoutMs: Math.min(periodMs / 2, 30_000) }
    const renew = async (): Promise<number> => {
      lease ??= await leases.get(leaseName, call)
      const now = clock.now()
      lease = await leases.update({ ...lease, spec: { ...lease.spec, renewTime: microTimestamp(now) } }, call)
      return now
    }
    try {
      return await renew()
    } catch (error) {
      if (!lease || !(isConflict(error) || isNotFound(error))) throw error
      lease = undefined // somebody wrote it, or the hub made it anew
      return renew()
    }
  }
}
