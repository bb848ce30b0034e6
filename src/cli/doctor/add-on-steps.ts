import type { ManagedClusterAddOn } from '../../api/index.ts'
import {
  AddOnAvailable,
  AddOnManifestApplied,
  Configured,
  Degraded,
  fitsRule,
  installNamespaceOf,
  installOnAnnotation,
  installRule,
  RegistrationApplied,
} from '../../addons/contract.ts'
import { findCondition } from '../../runtime/index.ts'
import { kubectl, ours, startAgentAgain, startHubAgain } from './advice.ts'
import { credentialRules } from './add-on-credentials.ts'
import { each, isDue, stuckFalse, type AddOnRule } from './add-on-rule.ts'
import { known, perhaps, unseen, type Rule, type Step } from './faults.ts'
import { clusterOf, hubOf, isLetIn, type Snapshot } from './snapshot.ts'

type Of = Rule<Snapshot>

/** By the rules of ClusterManagementAddOns. */
const isInstalled: Of = (s) => {
  const cluster = clusterOf(s)
  if (!cluster || !isLetIn(s)) return undefined
  const enabled = known(hubOf(s).addOns.addOns).filter(({ metadata }) => metadata.namespace === s.name)
  const missing = known(hubOf(s).addOns.catalogue).filter(
    ({ metadata }) => !metadata.deletionTimestamp && !enabled.some((one) => one.metadata.name === metadata.name),
  )
  for (const { metadata, spec } of missing) {
    const name = metadata.name!
    const rule = installRule(metadata.annotations?.[installOnAnnotation])
    const byHand = ours(s, 'hub', 'addon', 'enable', '--names', name, '--clusters', s.name)
    if (rule && 'fault' in rule)
      return { fault: 'addon-not-installed', why: `ClusterManagementAddOn ${name}: ${rule.fault}`, ...byHand }
    if (rule && fitsRule(cluster, rule.labels) && isDue(metadata.creationTimestamp, s))
      return {
        fault: 'addon-not-installed',
        why: `ClusterManagementAddOn ${name} is for this cluster by its rule (${installOnAnnotation}), and the hub has not installed it`,
        ...startHubAgain(s),
      }
    if (!rule && spec?.installStrategy?.type === 'Placements')
      return unseen(
        `ClusterManagementAddOn ${name} is installed by placements, which this hub does not follow: set its annotation ${installOnAnnotation}, or run ${byHand.command}`,
      )
  }
  return undefined
}

/** Somebody on the hub has to say what the add-on needs. */
const isServed: AddOnRule = (addOn, s) => {
  const name = addOn.metadata.name!
  const isKnown = addOn.status?.registrations !== undefined || findCondition(addOn, Configured.type) !== undefined
  if (isKnown || !isDue(addOn.metadata.creationTimestamp, s)) return undefined
  const listed = known(hubOf(s).addOns.catalogue).some(({ metadata }) => metadata.name === name)
  return {
    fault: 'addon-unknown',
    why: listed
      ? 'nobody on the hub has said what it needs: the controller of the add-on does not run there. Start it, or take the add-on away'
      : `the hub has no ClusterManagementAddOn ${name}, and no controller knows it: install the add-on on the hub (${s.program} addon create, or its own controller), or take it away`,
    ...kubectl(s, 'hub', '-n', s.name, 'delete', 'managedclusteraddon', name),
  }
}

const isConfigured: AddOnRule = (addOn, s) => {
  const said = stuckFalse(addOn, Configured.type, s)
  return (
    said && {
      fault: 'addon-misconfigured',
      why: said.message,
      ...kubectl(s, 'hub', '-n', s.name, 'edit', 'managedclusteraddon', addOn.metadata.name!),
    }
  )
}

const isValid: AddOnRule = (addOn, s) => {
  const said = findCondition(addOn, Degraded.type)
  if (said?.status !== 'True' || !['InvalidName', 'InvalidRegistrations'].includes(said.reason)) return undefined
  const name = addOn.metadata.name!
  const place = ['-n', s.name]
  return {
    fault: 'addon-invalid',
    why: said.message,
    ...(said.reason === 'InvalidName'
      ? kubectl(s, 'hub', ...place, 'delete', 'managedclusteraddon', name)
      : kubectl(s, 'hub', ...place, 'edit', 'managedclusteraddon', name, '--subresource=status')),
  }
}

/** An agent that waits for a certificate says so, and who it is for, after a minute. */
const declaringMs = 90_000

/** The hub binds permissions to who the add-on's agent is, as soon as the cluster's agent has said it. */
const isApplied: AddOnRule = (addOn, s) => {
  const said = stuckFalse(addOn, RegistrationApplied.type, s)
  if (!said) return undefined
  const pending = said.reason === RegistrationApplied.pending().reason
  if (pending && !isDue(said.lastTransitionTime, s, declaringMs)) return undefined
  const refused = said.reason === RegistrationApplied.refused('').reason
  return {
    fault: 'addon-registration-failed',
    why: pending ? 'the agent of the cluster has not said yet who the add-on is on the hub' : said.message,
    // Who it is the cluster's agent says, and puts right what others have written; all else is the hub's.
    ...(pending || refused ? startAgentAgain(s) : startHubAgain(s)),
  }
}

/** What the add-on's works bring, by kind. */
const workloadsOf = ({ hub, name }: Snapshot, addOn: ManagedClusterAddOn) =>
  (perhaps(hub?.works) ?? [])
    .filter(
      ({ metadata }) =>
        metadata.namespace === name && metadata.ownerReferences?.some(({ uid }) => uid === addOn.metadata.uid),
    )
    .flatMap(({ spec }) => spec.workload?.manifests ?? [])
    .filter((manifest) => ['Deployment', 'DaemonSet'].includes(String(manifest['kind'])))

const isDeployed: AddOnRule = (addOn, s) => {
  const said = stuckFalse(addOn, AddOnManifestApplied.type, s)
  if (!said) return undefined
  const base = { fault: 'addon-not-deployed' as const, why: said.message }
  const place = installNamespaceOf(addOn)
  const there = perhaps(s.managed?.namespaces)
  if (there && !there.has(place)) return { ...base, ...kubectl(s, 'managed', 'create', 'namespace', place) }
  if (said.reason === AddOnManifestApplied.waiting('').reason) return { ...base, ...startAgentAgain(s) }
  if (said.reason === AddOnManifestApplied.workFailed('').reason) return { ...base, ...startHubAgain(s) }
  return { ...base, ...kubectl(s, 'hub', '-n', s.name, 'get', 'manifestworks', '-o', 'yaml') }
}

const isWell: AddOnRule = (addOn, s) => {
  const said = findCondition(addOn, AddOnAvailable.type)
  const isLost = said?.reason === AddOnAvailable.leaseNotFound('').reason
  if (!said || (said.status !== 'False' && !isLost) || !isDue(said.lastTransitionTime, s)) return undefined
  const place = installNamespaceOf(addOn)
  const names = workloadsOf(s, addOn).map(
    (one) => `${String(one['kind']).toLowerCase()}/${(one['metadata'] as { name?: string }).name}`,
  )
  return {
    fault: 'addon-unavailable',
    why: said.message,
    ...(names.length > 0
      ? kubectl(s, 'managed', '-n', place, 'rollout', 'restart', ...names)
      : kubectl(s, 'managed', '-n', place, 'get', 'pods,leases')),
  }
}

/** The add-ons of a cluster: from the rule that installs them to their health. */
export const addOnSteps: readonly Step<Snapshot>[] = [
  { step: 'add-ons are installed', rules: [isInstalled] },
  { step: 'add-ons are registered', rules: [isServed, isValid, isConfigured, isApplied].map(each) },
  { step: 'credentials of add-ons', rules: credentialRules.map(each) },
  { step: 'add-ons are deployed', rules: [each(isDeployed)] },
  { step: 'add-ons are well', rules: [each(isWell)] },
]
