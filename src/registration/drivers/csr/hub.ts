import { label, signer } from '../../../api/index.ts'
import { CertificateSigningRequest, type Api } from '../../../kube/index.ts'
import { inParallel, type Clock, type EventRecorder, type Logger } from '../../../runtime/index.ts'
import type { HubDriver } from '../driver.ts'
import { Approval } from './approval.ts'
import { recordHolder } from './holder.ts'

export interface CsrHubOptions {
  client: Api
  gates: { managedClusterAutoApproval: boolean }
  /** Users whose clusters join without a person, with the gate on. */
  autoApproveUsers: readonly string[]
  events: Pick<EventRecorder, 'record'>
  clock: Clock
  log: Logger
  signerName?: string | undefined
}

/** Client certificates from the hub's own signer. It serves every cluster that no other driver claims, so it comes last. */
export const csrHubDriver = (options: CsrHubOptions): HubDriver => {
  const { client, gates, autoApproveUsers, events, clock, log, signerName = signer.kubeApiServerClient } = options
  const policy = { autoApproval: gates.managedClusterAutoApproval, users: new Set(autoApproveUsers) }
  let approval: Approval | undefined
  return {
    name: 'csr',
    serves: () => true,
    // An agent can write what it likes into its ManagedCluster, so nothing there says who made it. Who made a CSR is
    // written by the API server: a cluster is as trustworthy as whoever asks for its certificate.
    waitsForPerson: ({ metadata: { name = '' } }) =>
      approval?.vouched(name)
        ? undefined
        : {
            reason: 'NoTrustedRequest',
            message: `nobody whose clusters are accepted automatically has asked for a certificate of ${name}; a person decides: clusteradm accept --clusters ${name}`,
          },
    grant: async () => {},
    revoke: async (cluster, signal) => {
      const { name = '', deletionTimestamp } = cluster.metadata
      await removeUnissued(client, name, signerName, signal)
      if (deletionTimestamp && policy.autoApproval) await recordHolder(client, name, null, signal)
    },
    start: (manager, isOurs) => {
      approval = new Approval({ name: 'csr-approval', client, signerName, policy, events, clock, log, isOurs }, manager)
    },
    wakes: (enqueue) =>
      approval?.csrs.on({ added: (csr) => enqueue(csr.metadata.labels?.[label.clusterName] ?? '') }) ?? (() => {}),
  }
}

/** Deletes what could still become a certificate: an open request that somebody approves later, an approved one not yet signed. */
export const removeUnissued = async (
  client: Api,
  cluster: string,
  signerName: string,
  signal: AbortSignal,
): Promise<void> => {
  const csrs = client.of(CertificateSigningRequest)
  const { items } = await csrs.list({
    labelSelector: `${label.clusterName}=${cluster},!${label.addOnName}`,
    fieldSelector: `spec.signerName=${signerName}`,
    signal,
  })
  const open = items.filter(
    ({ status }) => !status?.certificate && !status?.conditions?.some(({ type }) => type !== 'Approved'),
  )
  const deletions = open.map(({ metadata: { name, uid } }) => async () => {
    await csrs.delete(name!, { preconditions: { uid }, signal })
  })
  await inParallel(8, deletions)
}
