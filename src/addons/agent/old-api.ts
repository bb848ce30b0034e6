import { ManagedClusterAddOn } from '../../api/index.ts'
import { isNotFound, type Api } from '../../kube/index.ts'
import { describeError, setConditions, sleep, type Clock, type Logger } from '../../runtime/index.ts'
import { RegistrationServed } from '../contract.ts'

/** A hub that is too old is asked again after this: it may have been upgraded. */
const askAgainMs = 60_000

const tooOld = {
  ...RegistrationServed.refused(
    'this hub serves ManagedClusterAddOns in version v1alpha1 only, and agents register add-ons in v1beta1; upgrade the hub: the add-on gets its credential within a minute then',
  ),
  reason: 'HubTooOld',
}

export interface OldApiOptions {
  hub: Api
  cluster: string
  clock: Clock
  log: Logger
}

/**
 * Waits until the hub serves the version that we speak. Hubs in the field served v1alpha1 alone for years, and its registrations
 * have another shape, without drivers: meanwhile each add-on says what is missing.
 */
export const untilServed = async (options: OldApiOptions, signal: AbortSignal): Promise<void> => {
  const { hub, cluster, clock, log } = options
  while (!(await isServed(hub, cluster, signal))) {
    log.error(
      'this hub does not serve ManagedClusterAddOns in v1beta1: add-ons get no credentials until it is upgraded',
    )
    await tell(options, signal)
    await sleep(clock, askAgainMs, signal)
  }
}

/** Only a clear no counts: whatever else goes wrong is for those who follow the add-ons. */
const isServed = async (hub: Api, cluster: string, signal: AbortSignal): Promise<boolean> => {
  try {
    await hub.of(ManagedClusterAddOn, cluster).list({ limit: 1, signal })
    return true
  } catch (error) {
    signal.throwIfAborted()
    return !isNotFound(error)
  }
}

// A condition has the same shape in both versions.
const tell = async ({ hub, cluster, clock, log }: OldApiOptions, signal: AbortSignal): Promise<void> => {
  const addOns = hub.of(ManagedClusterAddOn.versions.v1alpha1, cluster)
  try {
    for (const { metadata, status } of (await addOns.list({ signal })).items) {
      const conditions = setConditions(status?.conditions, [tooOld], { now: clock.now() })
      if (conditions === status?.conditions) continue
      const { uid, resourceVersion } = metadata
      const merge = { metadata: { uid, resourceVersion }, status: { conditions } }
      await addOns.patch(metadata.name!, { merge }, { subresource: 'status', signal })
    }
  } catch (error) {
    signal.throwIfAborted()
    // A hub without any add-ons is no fault, and what was in the way is tried again.
    if (!isNotFound(error))
      log.warn('add-ons could not be told that the hub is too old', { error: describeError(error) })
  }
}
