import { addressIn } from './kubeconfig.ts'
import { secretKey } from '../contract.ts'
import type { AgentState, Phase } from './phases.ts'
import { unusable } from './credential.ts'
import { chooseHub, sameHub } from './hubs.ts'

/** Decides which hub to go to, and whether we have a credential for it. Waits for a secret to change when there is no choice. */
export const choose = async (agent: AgentState, signal: AbortSignal): Promise<Phase> => {
  const { settings, secret, bootstraps, failures, readiness } = agent
  for (;;) {
    // Before anything is read: a change in between is not missed.
    const changed = nextChange(agent, signal)
    const current = await addressIn(secret.data[secretKey.kubeconfig], secret.source)
    const problem = unusable(agent)
    const answer = chooseHub({
      candidates: bootstraps.candidates,
      current,
      usable: !problem,
      failures,
      now: settings.clock.now(),
      restMs: settings.hubConnectionTimeoutMs,
    })
    if ('hub' in answer) {
      changed.cancel()
      const { address, bootstrap } = answer.hub
      if (!problem && sameHub(current, address)) return { name: 'joined', hub: answer.hub }
      const because = problem ?? {
        reason: 'OtherHub',
        message: `the credential is for ${current?.server ?? 'no hub'}, and this is ${address.server}`,
      }
      if (bootstrap) return { name: 'bootstrap', hub: { ...answer.hub, bootstrap }, because }
      readiness.waitFor(because.message)
    } else readiness.waitFor(answer.missing)
    await changed.promise
  }
}

/** Settles when a secret changes. */
const nextChange = (
  { secret, bootstraps }: AgentState,
  signal: AbortSignal,
): { promise: Promise<void>; cancel(): void } => {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const abort = (): void => reject(signal.reason as Error)
  promise.catch(() => {}) // it may be nobody's any more when the signal comes
  const ends = [secret.on(resolve), bootstraps.on(resolve), (): void => signal.removeEventListener('abort', abort)]
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  const cancel = (): void => {
    for (const end of ends) end()
  }
  void promise.then(cancel, cancel)
  return { promise, cancel }
}
