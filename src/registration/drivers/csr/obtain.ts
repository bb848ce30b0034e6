import { label } from '../../../api/index.ts'
import {
  CertificateSigningRequest,
  isAlreadyExists,
  isForbidden,
  isInvalid,
  type ApiError,
} from '../../../kube/index.ts'
import { sleep, stalled, timestamp } from '../../../runtime/index.ts'
import { CertificateRotated, pendingKey, secretKey } from '../../contract.ts'
import type { ObtainContext, SecretChange, SecretData } from '../driver.ts'
import { unusable } from './credential.ts'
import { backoffMs, follow } from './follow.ts'
import { csrObject, isFor, newPending, noPending, pendingIn, type Pending, type Recipe } from './request.ts'
import { signerHint, verdictOf, type Verdict } from './verdict.ts'

/** With this many CSRs of one requester on the hub something goes round in circles: no more are made. */
const mostRequests = 10
const tooManyMs = 300_000
/** After a refusal: 2 minutes, doubled for each further one that the hub still keeps, up to an hour. */
const refusalMs = { first: 120_000, most: 3_600_000 }

type Issued = Extract<Verdict, { kind: 'issued' }>
type Refused = Extract<Verdict, { kind: 'refused' }>

/**
 * Gets a certificate. The key is saved before the hub hears of it and names its CSR, so that a process that starts again at
 * any moment goes on with the same one.
 */
export const obtain = async (recipe: Recipe, context: ObtainContext): Promise<SecretChange> => {
  try {
    return await pursue(recipe, context)
  } catch (error) {
    const isNo = isForbidden(error) || isInvalid(error)
    // Saving may fail as well, and that is not the hub's doing.
    throw isNo && error.request.server === context.hub.connection.server ? notAllowed(recipe, error, context) : error
  }
}

const pursue = async (recipe: Recipe, context: ObtainContext): Promise<SecretChange> => {
  const { clock, random, log, signal } = context
  let pending = pendingIn(recipe, context.present)
  for (let tries = 0; ; tries++) {
    // Nothing is asked twice in a hurry, whatever becomes of the first.
    if (tries > 0) await sleep(clock, backoffMs(tries, random), signal)
    const known = pending && (await csrsOf(context).find(pending.name, { signal }))
    pending ??= await prepare(recipe, context)
    const csr = known ?? (await create(recipe, pending, context))
    // Names of CSRs can be read by many: somebody took ours when it was gone.
    const end = isFor(csr, pending.key) ? await settled(recipe, pending, csr, context) : 'taken'
    if (end === 'taken') pending = undefined
    else if (end === 'gone') log.info('our CSR is gone; asking again with the same key', { csr: pending.name })
    else if (end.kind === 'issued') return finish(end, pending, context)
    else {
      await afterRefusal(recipe, csr, end, context)
      pending = undefined
    }
  }
}

const csrsOf = ({ hub }: ObtainContext) => hub.of(CertificateSigningRequest)

const prepare = async (recipe: Recipe, context: ObtainContext): Promise<Pending> => {
  const pending = newPending(recipe)
  await context.save({ [pendingKey.key]: pending.key, [pendingKey.csr]: pending.name })
  return pending
}

const create = async (recipe: Recipe, pending: Pending, context: ObtainContext): Promise<CertificateSigningRequest> => {
  await roomForOne(recipe, context)
  const { signal } = context
  try {
    return await csrsOf(context).create(csrObject(recipe, pending), { signal })
  } catch (error) {
    // An answer that was lost: it was created after all.
    if (isAlreadyExists(error)) return csrsOf(context).get(pending.name, { signal })
    throw error
  }
}

const notAllowed = ({ subject }: Recipe, error: ApiError, context: ObtainContext): Error => {
  const message = `the hub does not let us ask for a certificate of ${subject.user}: ${error.serverMessage}`
  const next = isForbidden(error)
    ? 'our user on the hub needs create, get, list and watch on certificatesigningrequests'
    : 'check the lifetime and the names that are asked for'
  context.report({ condition: CertificateRotated.failed(`${message}; ${next}`) })
  return stalled('RequestNotAllowed', { message, next, cause: error })
}

/** Waits while there are too many. */
const roomForOne = async (recipe: Recipe, context: ObtainContext): Promise<void> => {
  const { clock, signal } = context
  for (;;) {
    const { length } = await ours(recipe, context)
    if (length < mostRequests) return
    const text = `no more certificate requests are made: the hub has ${length} for ${recipe.subject.user} already; find out why they lead to nothing, and remove them: kubectl delete csr -l ${selectorOf(recipe)}`
    context.report({ condition: CertificateRotated.failed(text) })
    context.report({ waitingFor: `fewer certificate requests on the hub; ${text}` })
    await sleep(clock, tooManyMs, signal)
  }
}

const selectorOf = ({ labels }: Recipe): string =>
  [
    ...Object.entries(labels).map(([key, value]) => `${key}=${value}`),
    ...(label.addOnName in labels ? [] : [`!${label.addOnName}`]),
  ].join()

const ours = async (recipe: Recipe, context: ObtainContext): Promise<CertificateSigningRequest[]> => {
  const { clock, signal } = context
  const { items } = await csrsOf(context).list({ labelSelector: selectorOf(recipe), signal })
  // With a certificate of our own, only those count that were made with it: others can make what they like in our name.
  const renews = isRenewal(recipe, context.present, clock.now())
  return items.filter(
    ({ spec }) => spec.signerName === recipe.signerName && (!renews || spec.username === recipe.subject.user),
  )
}

/** An add-on's certificate is always asked for with the cluster's, not with its own. */
const isRenewal = (recipe: Recipe, present: SecretData, now: number): boolean =>
  !(label.addOnName in recipe.labels) && !unusable(present, recipe.subject, now)

/** How the CSR came to an end; says what it waits for meanwhile. */
const settled = (
  recipe: Recipe,
  pending: Pending,
  csr: CertificateSigningRequest,
  context: ObtainContext,
): Promise<Issued | Refused | 'gone'> => {
  const { hub, clock, present } = context
  const { server } = hub.connection
  const approver = isRenewal(recipe, present, clock.now()) ? 'the hub to approve the renewal' : recipe.approver
  const judge = (now: CertificateSigningRequest): Issued | Refused | undefined => {
    const verdict = verdictOf(now, { recipe, pending, server, now: clock.now() })
    if (verdict.kind === 'issued' || verdict.kind === 'refused') return verdict
    const signing = `the hub's signer ${recipe.signerName} to sign CSR ${pending.name}, which is approved; if it never does: ${recipe.unsigned ?? signerHint(server)}`
    context.report({ waitingFor: verdict.kind === 'approved' ? signing : `${approver} (CSR ${pending.name})` })
    return undefined
  }
  return follow(csr, judge, { ...context, csrs: csrsOf(context) })
}

/** Waits before the next try, the longer the more often we were refused. Whoever deletes the refused CSR ends the wait. */
const afterRefusal = async (
  recipe: Recipe,
  csr: CertificateSigningRequest,
  { at, why, next }: Refused,
  context: ObtainContext,
): Promise<void> => {
  const { clock, log, signal } = context
  const refusals = (await ours(recipe, context)).filter(isRefused).length
  const wait = Math.min(refusalMs.first * 2 ** Math.max(0, refusals - 1), refusalMs.most)
  // From the moment of the refusal, so that starting again does not begin the wait anew; the hub's clock may be ahead.
  const left = Math.min(wait, Math.max(0, at + wait - clock.now()))
  const text = `${why}; the next request is made at ${timestamp(clock.now() + left)}; ${next}`
  context.report({ condition: CertificateRotated.failed(text) })
  context.report({ waitingFor: text })
  log.warn('our certificate request was refused', { csr: csr.metadata.name, why, next, waitMs: left })
  const over = new AbortController()
  const stop = (): void => over.abort()
  const cancel = clock.after(left, stop)
  signal.addEventListener('abort', stop, { once: true })
  try {
    await follow(csr, () => undefined, { ...context, csrs: csrsOf(context), signal: over.signal })
  } catch (error) {
    signal.throwIfAborted()
    if (!over.signal.aborted) throw error
  } finally {
    cancel()
    signal.removeEventListener('abort', stop)
  }
}

const isRefused = ({ status }: CertificateSigningRequest): boolean =>
  status?.conditions?.some(({ type }) => type === 'Denied' || type === 'Failed') ?? false

const finish = (
  { certificate, notBefore, notAfter }: Issued,
  pending: Pending,
  context: ObtainContext,
): SecretChange => {
  const message = `client certificate rotated starting from ${timestamp(notBefore)} to ${timestamp(notAfter)}`
  context.report({ condition: CertificateRotated.rotated(message) })
  return { [secretKey.certificate]: certificate, [secretKey.key]: pending.key, ...noPending }
}
