/** Client certificates over the cluster's own way to the hub, for `kubeClient` and `customSigner` items. */
import { describeError, timestamp, type ConditionState } from '../../../runtime/index.ts'
import type { SecretChange } from '../../../kube/index.ts'
import { addOnSecretKey, AddOnCertificateRotated, credentialAnnotation } from '../../contract.ts'
import { certificateContent, hubDigest } from '../content.ts'
import { patienceMs, type Keeper, type KeeperContext, type Present, type Standing } from '../driver.ts'

/** After a failure: ten seconds, doubled for each further one, up to ten minutes. */
const retryMs = { first: 10_000, most: 600_000 }

/**
 * Keeps a certificate in a secret. A request waits for people and signers, however long, so it runs beside the looks: at most
 * one at a time. The old certificate stays in use until the new one takes its place.
 */
export const csrKeeper = (context: KeeperContext): Keeper => {
  const { item, identity, address, clock, random, counts, enqueue } = context
  const driver = context.certificateFor(item)
  const about = { item, cluster: identity.cluster, address }
  const stopping = new AbortController()
  let running: Promise<void> | undefined
  let failures = 0
  let notBefore = -Infinity
  let trouble: ConditionState | undefined
  let waitingFor: { what: string; since: number } | undefined
  let drawn: { certificate: string | undefined; at: number } | undefined
  let ends: number | undefined

  const isGood = (present: Present | undefined): present is Present =>
    present !== undefined &&
    driver.unusable(present.data, { identity, now: clock.now() }) === undefined &&
    [undefined, hubDigest(address)].includes(present.annotations[credentialAnnotation.hub])

  /** Drawn once for each certificate. */
  const renewAt = ({ data }: Present): number => {
    const certificate = data[addOnSecretKey.certificate]
    if (drawn?.certificate !== certificate) drawn = { certificate, at: driver.renewAt(data, random) }
    return drawn!.at
  }

  const contentOf = ({ [addOnSecretKey.certificate]: certificate, [addOnSecretKey.key]: key }: SecretChange) =>
    certificateContent(about, { certificate: certificate!, key: key! })

  const obtain = async (present: Present | undefined, signal: AbortSignal): Promise<void> => {
    const data = present?.data ?? {}
    const change = await driver.obtain({
      identity,
      hub: context.hub,
      present: data,
      save: (more) => context.write({ data: more, annotations: {} }, signal),
      report: (state) => {
        if ('waitingFor' in state) waitingFor = { what: state.waitingFor, since: waitingFor?.since ?? clock.now() }
        else
          trouble =
            state.condition.status === 'False' ? { ...state.condition, type: AddOnCertificateRotated.type } : undefined
        enqueue()
      },
      clock,
      random,
      log: context.log,
      signal,
    })
    const { data: wanted, annotations } = await contentOf(change)
    await context.write({ data: { ...wanted, ...change }, annotations }, signal)
  }

  const start = (present: Present | undefined): void => {
    const { signal } = stopping
    running = obtain(present, signal)
      .then(() => {
        counts.certificateIssued(item.addOn)
        context.log.info('an add-on got a certificate', { addOn: item.addOn, secret: item.secret })
        failures = 0
        trouble = undefined
      })
      .catch((error: unknown) => {
        if (signal.aborted) return
        counts.certificateFailed(item.addOn)
        const wait = Math.min(retryMs.first * 2 ** Math.min(failures++, 10), retryMs.most)
        notBefore = clock.now() + wait * (0.5 + random() / 2)
        trouble ??= AddOnCertificateRotated.failed(`no certificate for ${item.user}: ${describeError(error)}`)
        context.log.warn('an add-on got no certificate; trying again', { addOn: item.addOn, error })
      })
      .finally(() => {
        running = waitingFor = undefined
        if (!signal.aborted) enqueue()
      })
  }

  const standing = (good: boolean, dueAt: number): Standing => {
    const lookAgainAt = running ? (waitingFor ? waitingFor.since + patienceMs : Infinity) : Math.max(dueAt, notBefore)
    const late = waitingFor !== undefined && clock.now() >= waitingFor.since + patienceMs
    if (trouble) return { condition: trouble, lookAgainAt: late ? Infinity : lookAgainAt }
    if (good)
      return {
        condition: AddOnCertificateRotated.rotated(`client certificate rotated, expires at ${timestamp(ends!)}`),
        lookAgainAt: late ? Infinity : lookAgainAt,
      }
    if (late)
      return { condition: AddOnCertificateRotated.waiting(`waiting for ${waitingFor!.what}`), lookAgainAt: Infinity }
    return { condition: undefined, lookAgainAt }
  }

  return {
    look: async ({ present, signal }) => {
      const good = isGood(present)
      ends = good ? driver.expiresAt(present.data) : undefined
      if (good) await context.write(await contentOf(present.data), signal)
      const dueAt = good ? renewAt(present) : clock.now()
      if (!running && clock.now() >= Math.max(dueAt, notBefore)) start(present)
      return standing(good, dueAt)
    },
    expiresAt: () => ends,
    stop: async () => {
      stopping.abort(new Error('this credential is no longer wanted'))
      await running
    },
  }
}
