/**
 * A replica that asks for the lead and, while it has it, notes the time over and over. Tests start several, do them harm,
 * and read the notes of all: `candidate.ts KUBECONFIG IDENTITY NOTES LEASE_MS`.
 */
import { appendFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { clientFor, connectionFrom, loadKubeconfig } from '../../src/kube/index.ts'
import { LeaderElection } from '../../src/runtime/index.ts'

const [path, identity, notes, leaseMs] = process.argv.slice(2) as [string, string, string, string]
const client = clientFor(connectionFrom(await loadKubeconfig({ path, env: {} }), {}), { userAgent: identity })
const election = new LeaderElection({
  client,
  identity,
  namespace: 'default',
  name: 'test-lead',
  leaseMs: Number(leaseMs),
})
const stop = new AbortController()
process.once('SIGTERM', () => stop.abort())

/** The clock that all processes of a machine share. */
const note = (what: string): void => appendFileSync(notes, `${process.hrtime.bigint()} ${identity} ${what}\n`)

try {
  await election.run(stop.signal, async (signal) => {
    note('begins')
    while (!signal.aborted) {
      if (election.leads()) note('leads')
      await pause(10)
    }
  })
  note('ends')
} catch (error) {
  note(`lost: ${(error as Error).message}`)
  process.exitCode = 3
}
client.close()
