import { randomBytes } from 'node:crypto'
import { signer } from '../api/index.ts'
import { CertificateSigningRequest, isForbidden, type Client } from '../kube/index.ts'
import { timestamp, type Clock } from '../runtime/index.ts'
import { createRequest, newKey } from '../runtime/pki/index.ts'
import { TimedOut } from './errors.ts'
import type { Progress } from './progress.ts'
import { untilObject } from './wait.ts'

/** How it went: the hub signs, it does not and says why, or it could not be tried. */
export type ProbeOutcome = { kind: 'signs' } | { kind: 'refuses' | 'untried'; why: string }

/** Longer than any controller manager takes that signs at all. */
const patienceMs = 15_000

/**
 * Tries whether a hub signs client certificates: asks for one that may do nothing, approves it, looks what comes of it, and
 * removes it again. Its key is thrown away.
 */
export const probeCsr = async (
  { client, clock, progress, signal }: { client: Client; clock: Clock; progress: Progress; signal: AbortSignal },
  waitMs = patienceMs,
): Promise<ProbeOutcome> => {
  const csrs = client.of(CertificateSigningRequest)
  const name = `clusteradm-probe-${randomBytes(5).toString('hex')}`
  const { csr } = createRequest({ commonName: name, key: newKey() })
  try {
    // Not cut by an interruption: a server may still carry out a request that we gave up, after our delete.
    const made = await csrs.create(
      {
        metadata: { name },
        spec: {
          request: Buffer.from(csr).toString('base64'),
          signerName: signer.kubeApiServerClient,
          usages: ['client auth'],
          expirationSeconds: 600,
        },
      },
      { timeoutMs: patienceMs },
    )
    signal.throwIfAborted()
    const condition = {
      type: 'Approved' as const,
      status: 'True' as const,
      reason: 'Probe',
      message: 'clusteradm init tries whether this hub signs client certificates',
      lastUpdateTime: timestamp(clock.now()),
    }
    await csrs.update({ ...made, status: { conditions: [condition] } }, { subresource: 'approval', signal })
    return await progress.step(
      'trying whether this hub signs client certificates',
      (step) =>
        untilObject<CertificateSigningRequest, ProbeOutcome>(csrs, name, { step, clock }, (seen) => {
          const failed = seen?.status?.conditions?.find(({ type }) => type === 'Failed' || type === 'Denied')
          const why = failed && [failed.reason, failed.message].filter(Boolean).join(': ')
          if (failed) return { done: { kind: 'refuses', why: why || failed.type } }
          if (seen?.status?.certificate) return { done: { kind: 'signs' } }
          return seen ? { seen: 'not signed yet' } : { done: { kind: 'untried', why: 'somebody removed it' } }
        }),
      { timeoutMs: waitMs },
    )
  } catch (error) {
    if (error instanceof TimedOut) return { kind: 'refuses', why: `no certificate within ${waitMs / 1000} s` }
    if (isForbidden(error)) return { kind: 'untried', why: error.serverMessage }
    throw error
  } finally {
    // Also when the person interrupts: the signal must not stop this one.
    await csrs.delete(name, { timeoutMs: 5000 }).catch(() => false)
  }
}
