import { addOnSecretKey, addOnSecretName, credentialOfLabel, installNamespaceOf } from '../addons/contract.ts'
import { label, ManagedClusterAddOn } from '../api/index.ts'
import { clientFor, decoded, Secret, type Client, type Credential, type SecretData } from '../kube/index.ts'
import type { Joined, JoinedPart } from '../registration/agent/index.ts'
import { Controller, Informer, isTrue, setConditions, watching } from '../runtime/index.ts'
import { addOnName, RunsInAgent } from '../serviceaccounts/contract.ts'

export interface InAgentOptions {
  /** The managed cluster. */
  local: Client
  /** The agent's own namespace: it marks the secrets that this agent keeps. */
  owner: string
}

interface Running {
  readonly namespace: string
  readonly stop: AbortController
  readonly ended: Promise<void>
}

/**
 * The add-on `managed-serviceaccount` inside the cluster's one agent process: with the add-on's own credential all the same, which
 * the part beside it keeps in a Secret, and only while the add-on is enabled.
 */
export const serviceAccountsInAgent = (options: InAgentOptions): JoinedPart => ({
  name: 'service-accounts',
  run: async (joined) => {
    const { hub, identity, clock, log, metrics, signal } = joined
    const { local, owner } = options
    const shared = { clock, log }
    const namespace = identity.cluster
    const fieldSelector = `metadata.name=${addOnName}`
    const addOns = new Informer({ client: hub, resource: ManagedClusterAddOn, namespace, fieldSelector, ...shared })
    const labelSelector = `${credentialOfLabel}=${owner},${label.addOnName}=${addOnName}`
    const secrets = new Informer({ client: local, resource: Secret, labelSelector, ...shared })
    const stop = new AbortController()
    let running: Running | undefined
    let failure: unknown
    const end = async (): Promise<void> => {
      running?.stop.abort()
      await running?.ended
      running = undefined
    }
    const start = (where: string): Running => {
      const own = new AbortController()
      const ended = keepAccounts(joined, options, { where, secrets, signal: own.signal }).catch((error: unknown) => {
        failure = error
        stop.abort()
      })
      return { namespace: where, stop: own, ended }
    }
    const controller = new Controller({
      name: 'service-accounts-in-agent',
      ...shared,
      metrics,
      workers: 1,
      reconcile: async (_, signal) => {
        const addOn = addOns.get(`${namespace}/${addOnName}`)
        const where = addOn && !addOn.metadata.deletionTimestamp ? installNamespaceOf(addOn) : undefined
        if (running && running.namespace !== where) await end()
        if (!addOn || where === undefined) return {}
        await announce(joined, addOn, signal)
        if (!running && credentialIn(secrets, where)) running = start(where)
        return {}
      },
      watches: [watching(addOns, () => [addOnName]), watching(secrets, () => [addOnName])],
    })
    const forward = (): void => stop.abort()
    signal.addEventListener('abort', forward, { once: true })
    if (signal.aborted) forward()
    const informers = [addOns.run(stop.signal), secrets.run(stop.signal)]
    try {
      await controller.run(stop.signal)
    } finally {
      signal.removeEventListener('abort', forward)
      stop.abort()
      await end()
      await Promise.all(informers)
    }
    if (failure) throw failure
  },
})

/** Says so on the hub, which then deploys nothing. */
const announce = async ({ hub, clock }: Joined, addOn: ManagedClusterAddOn, signal: AbortSignal): Promise<void> => {
  if (isTrue(addOn, RunsInAgent.type)) return
  const { name, namespace, uid, resourceVersion } = addOn.metadata
  const conditions = setConditions(addOn.status?.conditions, [RunsInAgent.yes()], { now: clock.now() })
  const merge = { metadata: { uid, resourceVersion }, status: { conditions } }
  await hub.of(ManagedClusterAddOn, namespace).patch(name!, { merge }, { subresource: 'status', signal })
}

/** The same the other way round: a process that does not keep the accounts takes back what the one before it said. */
export const serviceAccountsElsewhere = (): JoinedPart => ({
  name: 'service-accounts',
  run: async ({ hub, identity, signal }) => {
    const addOns = hub.of(ManagedClusterAddOn, identity.cluster)
    const addOn = await addOns.find(addOnName, { signal })
    if (addOn && isTrue(addOn, RunsInAgent.type)) {
      const { uid, resourceVersion } = addOn.metadata
      const conditions = addOn.status?.conditions?.filter(({ type }) => type !== RunsInAgent.type)
      const merge = { metadata: { uid, resourceVersion }, status: { conditions } }
      await addOns.patch(addOnName, { merge }, { subresource: 'status', signal })
    }
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      else signal.addEventListener('abort', () => resolve(), { once: true })
    })
  },
})

const credentialIn = (secrets: Informer<Secret>, namespace: string): SecretData | undefined => {
  const data = decoded(secrets.get(`${namespace}/${addOnSecretName.kubeClient(addOnName)}`))
  const { token, certificate, key } = addOnSecretKey
  return data && (data[token] || (data[certificate] && data[key])) ? data : undefined
}

const keepAccounts = async (
  { address, identity, clock, random, log, metrics }: Joined,
  { local }: InAgentOptions,
  { where, secrets, signal }: { where: string; secrets: Informer<Secret>; signal: AbortSignal },
): Promise<void> => {
  const { runServiceAccountAgent } = await import('../serviceaccounts/agent/index.ts')
  let last: { version: string | undefined; credential: Credential } | undefined
  // The same object while nothing changed, so that connections are kept.
  const credentials = async (): Promise<Credential> => {
    const version = secrets.get(`${where}/${addOnSecretName.kubeClient(addOnName)}`)?.metadata.resourceVersion
    const data = credentialIn(secrets, where)
    if (last && (!data || last.version === version)) return last.credential
    const { certificate, key, token } = addOnSecretKey
    const proof = data?.[token] ? { token: data[token] } : { cert: data?.[certificate], key: data?.[key] }
    last = { version, credential: { ca: address.ca, ...proof } }
    return last.credential
  }
  const { server, tlsServerName, proxyUrl } = address
  const source = `secret ${where}/${addOnSecretName.kubeClient(addOnName)}`
  const hub = clientFor(
    { source, server, tlsServerName, proxyUrl, credentials },
    { userAgent: 'lanyard-service-accounts' },
  )
  const about = { local, cluster: identity.cluster, namespace: where, clock, random, log, metrics }
  try {
    await runServiceAccountAgent({ hub, ...about }, signal)
  } finally {
    hub.close()
  }
}
