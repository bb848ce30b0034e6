import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { CertificateSigningRequest, type Client } from '../kube/index.ts'
import { systemClock, type Clock } from '../runtime/index.ts'
import { eventually, runCli, startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import { probeCsr } from './csr-probe.ts'
import { progressOn } from './progress.ts'

let plane: ControlPlane
let client: Client

before(async () => {
  // Without a controller manager nobody signs, as on EKS.
  plane = await startControlPlane({ controllerManager: false })
  client = plane.client()
})
after(() => plane.stop())

const signal = new AbortController().signal
const quiet = progressOn({ sink: { write: () => 0 }, env: {}, clock: systemClock, signal: () => signal })
const probe = (as: Client, waitMs?: number) =>
  probeCsr({ client: as, clock: systemClock, progress: quiet, signal }, waitMs)
const left = async () => (await client.of(CertificateSigningRequest).list()).items.length

test('R1.6 a hub on which nothing signs refuses, and the trial is removed', async () => {
  assert.deepEqual(await probe(client, 200), { kind: 'refuses', why: 'no certificate within 0.2 s' })
  assert.equal(await left(), 0)
})

test('R1.6 a signer that says why is quoted', async () => {
  const csrs = client.of(CertificateSigningRequest)
  const outcome = probe(client, 60_000)
  await eventually.watching(csrs, async ([csr]) => {
    if (!csr?.status?.conditions?.length) return false
    const failed = {
      type: 'Failed',
      status: 'True',
      reason: 'SignerValidationFailure',
      message: 'no client certificates here',
    }
    const body = { ...csr, status: { ...csr.status, conditions: [...csr.status.conditions, failed] } }
    await csrs.subresource(csr.metadata.name!, 'status', { method: 'PUT', body })
    return true
  })
  assert.deepEqual(await outcome, { kind: 'refuses', why: 'SignerValidationFailure: no client certificates here' })
  assert.equal(await left(), 0)
})

test('R1.5 who may not make requests is told that it was not tried', async () => {
  const outcome = await probe(plane.client({ user: 'nobody' }))
  assert.equal(outcome.kind, 'untried')
})

test('R1.6 init warns of a hub that cannot use csr, names aws-irsa, and goes on', async () => {
  // Fifteen seconds of patience pass in three tenths of one.
  const hasty: Clock = { now: () => Date.now(), after: (ms, run) => systemClock.after(ms / 50, run) }
  const { code, err, out } = await runCli(['init', '--kubeconfig', plane.kubeconfig], { clock: hasty })
  assert.equal(code, 0, err)
  assert.match(
    err,
    /Warning: this hub does not sign client certificates \(no certificate within 15 s\).*--registration-auth aws-irsa/,
  )
  assert.match(out, /clusteradm join --hub-token/)
  assert.equal(await left(), 0)
})

test('R1.9 init warns where aws-irsa stands alone on a hub that does not look like EKS, and not beside csr', async () => {
  const arn = 'arn:aws:eks:us-west-2:123456789012:cluster/hub'
  const init = async (strategies: string): Promise<string> => {
    const words = `init --force --registration-auth ${strategies} --hub-cluster-arn ${arn} --kubeconfig ${plane.kubeconfig}`
    const { code, err } = await runCli(words.split(' '))
    assert.equal(code, 0, err)
    return err
  }
  assert.match(await init('aws-irsa'), /Warning: this hub does not look like EKS: aws-irsa alone will let in nobody/)
  assert.doesNotMatch(await init('csr,aws-irsa'), /Warning: this hub/)
})
