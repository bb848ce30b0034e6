import { isDeepStrictEqual } from 'node:util'
import { group, label, type ManagedCluster } from '../../api/index.ts'
import { mayAccess, Namespace, type Api, type ResourceAttributes } from '../../kube/index.ts'
import type { AdmissionRequest, Denial, UserInfo, Validate, Warned } from '../../runtime/webhook/index.ts'
import { clusterSet, registerGroup } from '../contract.ts'
import { forbiddenChanges, isAgent } from './agent-changes.ts'
import { clientConfigFaults } from './client-configs.ts'
import type { HubGates } from './hub.ts'
import { nameRefusal } from './reserved-names.ts'

export interface AdmissionOptions {
  client: Pick<Api, 'of'>
  gates: Pick<HubGates, 'defaultClusterSet'>
}

interface Asked {
  cluster: ManagedCluster
  old: ManagedCluster | undefined
  user: UserInfo
  name: string
}

/** Judges who may write what into a ManagedCluster. What is stored already is not judged again: only changes are. */
export const validateCluster = (options: AdmissionOptions): Validate<ManagedCluster> => {
  const judge = async (asked: Asked, signal: AbortSignal): Promise<Denial | Warned | undefined> =>
    nameDenial(asked) ??
    configDenial(asked) ??
    agentDenial(asked) ??
    (await setDenial(options, asked, signal)) ??
    (await acceptVerdict(options, asked, signal))
  return (request, { signal }) => {
    const asked = askedBy(request)
    return asked && judge(asked, signal)
  }
}

const askedBy = ({ object: cluster, oldObject, userInfo, name }: AdmissionRequest<ManagedCluster>): Asked | undefined =>
  cluster && { cluster, old: oldObject, user: userInfo, name: cluster.metadata.name ?? name ?? '' }

const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

const nameDenial = ({ old, name }: Asked): Denial | undefined => {
  if (old) return undefined // it cannot change
  const field = 'metadata.name'
  if (!dnsLabel.test(name))
    return {
      reason: 'Invalid',
      field,
      message: `${JSON.stringify(name.slice(0, 100))} is not a DNS label, and the cluster's namespace has the same name: use at most 63 of a-z, 0-9 and "-", beginning and ending with a letter or digit`,
    }
  const refusal = nameRefusal(name)
  return refusal && { reason: 'Invalid', field, message: `${name} is reserved: ${refusal.message}; use another name` }
}

const configDenial = ({ cluster, old }: Asked): Denial | undefined => {
  const configs = cluster.spec.managedClusterClientConfigs
  if (old && isDeepStrictEqual(configs, old.spec.managedClusterClientConfigs)) return undefined
  const causes = clientConfigFaults(configs)
  if (causes.length === 0) return undefined
  return { reason: 'Invalid', message: causes.map((c) => `${c.field}: ${c.message}`).join('; '), causes }
}

const agentDenial = ({ cluster, old, user, name }: Asked): Denial | undefined => {
  if (!old || !isAgent(user, name)) return undefined
  const fields = forbiddenChanges(cluster, old)
  if (fields.length === 0) return undefined
  return {
    reason: 'Forbidden',
    message: `the agent of cluster ${name} may not change ${fields.join(', ')}: it may change spec.managedClusterClientConfigs, and set spec.hubAcceptsClient to false; the rest is for administrators of the hub`,
  }
}

/** Being in a set decides who may send work to a cluster, so that both sets have a say: the one that it leaves and the new one. */
const setDenial = async (options: AdmissionOptions, asked: Asked, signal: AbortSignal): Promise<Denial | undefined> => {
  const { cluster, old, name } = asked
  const from = old?.metadata.labels?.[label.clusterSet]
  const to = cluster.metadata.labels?.[label.clusterSet]
  if (from === to) return undefined
  // Whoever is in no set is put there by the hub, so that it needs no right of theirs.
  const toDefault = options.gates.defaultClusterSet && to === clusterSet.default
  if (from) {
    const denied = await joinDenial(options, asked, from, `take cluster ${name} out of set ${from}`, signal)
    if (denied) return denied
  }
  return to && !toDefault ? joinDenial(options, asked, to, `put cluster ${name} into set ${to}`, signal) : undefined
}

const joinDenial = (options: AdmissionOptions, { user }: Asked, set: string, deed: string, signal: AbortSignal) =>
  rightDenial(options.client, user, deed, setAccess('join', set), signal)

/** The right to put clusters into a set (`join`), or to use a set in a namespace (`bind`). */
export const setAccess = (subresource: 'join' | 'bind', name: string): ResourceAttributes => ({
  verb: 'create',
  group: group.cluster,
  resource: 'managedclustersets',
  subresource,
  name,
})

const acceptVerdict = async (
  { client }: AdmissionOptions,
  { cluster, old, user, name }: Asked,
  signal: AbortSignal,
): Promise<Denial | Warned | undefined> => {
  if (!cluster.spec.hubAcceptsClient || old?.spec.hubAcceptsClient) return undefined
  const access = { verb: 'update', group: registerGroup, resource: 'managedclusters', subresource: 'accept', name }
  const denied = await rightDenial(client, user, `accept cluster ${name}`, access, signal)
  if (denied) return denied
  const namespace = await client.of(Namespace).find(name, { signal })
  if (!namespace) return undefined
  if (namespace.metadata.deletionTimestamp)
    return {
      reason: 'Forbidden',
      field: 'spec.hubAcceptsClient',
      message: `namespace ${name} is being deleted, and would take with it what the cluster gets there: accept the cluster when it is gone (kubectl get namespace ${name})`,
    }
  if (namespace.metadata.labels?.[label.clusterName] === name) return undefined
  return {
    warnings: [
      `namespace ${name} exists already and is not labelled for this cluster: it becomes the cluster's only if it is empty`,
    ],
  }
}

/** Why somebody may not do this; undefined when they may. */
export const rightDenial = async (
  client: Pick<Api, 'of'>,
  user: UserInfo,
  deed: string,
  access: ResourceAttributes,
  signal: AbortSignal,
): Promise<Denial | undefined> => {
  if (await mayAccess(client, user, access, { signal })) return undefined
  const { verb, group: apiGroup, resource, subresource, name } = access
  return {
    reason: 'Forbidden',
    message: `user ${JSON.stringify(user.username)} may not ${deed}: that needs a role with verb ${verb} on ${resource}/${subresource} of ${apiGroup}, for the name ${name}`,
  }
}
